import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** sqlite-jdbc: databases in memory, and statements that are never closed. */
final class Sqlite {
    private Sqlite() {}

    public static void main(String[] arguments) throws Exception {
        List<Object> open = new ArrayList<>();
        for (int database = 0; database < 4; database++) {
            Connection connection = DriverManager.getConnection("jdbc:sqlite::memory:");
            Statement statement = connection.createStatement();
            statement.execute("create table t (k integer primary key, v blob)");
            connection.setAutoCommit(false);
            PreparedStatement insert = connection.prepareStatement("insert into t values (?, randomblob(1000))");
            for (int i = 0; i < 25_000; i++) {
                insert.setInt(1, i);
                insert.executeUpdate();
            }
            connection.commit();
            open.add(insert);
            open.add(connection);
        }
        System.out.println("READY");
        System.in.read();
        System.out.println(open.size());
    }
}
