# Batch programs that `marusa bench account` runs again and again in one JVM: the compiler of Scala 3, and programs of the kinds that
# DaCapo has (which is in no registry): an index of text, a database, XSLT, a checker of sources. Each fetch_NAME puts its libraries from
# Maven Central, its input and a file "command" into the current directory. To be sourced after fetch.bash; the binary has both inside
# (crates/marusa-host/src/act/server/recipe.rs). All of them run on Java 8.

# libraries GROUP:ARTIFACT:VERSION: this one and what it needs, in lib.
libraries() {
    as_package mvn maven
    local group artifact version
    IFS=: read -r group artifact version <<<"$1"
    cat >pom.xml <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
    <modelVersion>4.0.0</modelVersion>
    <groupId>marusa</groupId><artifactId>batch</artifactId><version>1</version><packaging>pom</packaging>
    <dependencies>
        <dependency>
            <groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>
        </dependency>
    </dependencies>
</project>
END
    thrice mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DoutputDirectory=lib -DincludeScope=runtime >&2
    rm pom.xml
}

# runs CLASS METHOD ARGUMENT...: what one run is. {here} stands for the current directory, {out} for one that is made for the runs.
runs() { printf '%s\n' "$@" >command; }

fetch_compiler() {
    libraries org.scala-lang:scala3-compiler_3:3.6.4
    source_of 12 >Shapes.scala
    runs dotty.tools.dotc.Main process -usejavacp -d '{out}' '{here}/Shapes.scala'
}

# 40 texts of 1,200 lines, of 20,000 words of which some are common.
fetch_lucene() {
    libraries org.apache.lucene:lucene-demo:8.11.2
    mkdir docs
    awk '
        function word(number, text) {
            do { text = text substr("aeioustrnlkmdpgbfvcz", number % 20 + 1, 1); number = int(number / 20) } while (number > 0)
            return text
        }
        BEGIN {
            srand(5)
            for (file = 0; file < 40; file++) {
                name = "docs/" file ".txt"
                for (line = 0; line < 1200; line++) {
                    text = ""
                    for (at = 0; at < 12; at++) text = text word(int(rand() ^ 3 * 20000)) " "
                    print text >name
                }
                close(name)
            }
        }'
    runs org.apache.lucene.demo.IndexFiles main -index '{out}' -docs '{here}/docs'
}

fetch_h2() {
    libraries com.h2database:h2:2.1.214
    cat >script.sql <<'END'
CREATE TABLE account(id INT PRIMARY KEY, owner VARCHAR(40), balance DECIMAL(12, 2));
CREATE TABLE booking(id INT PRIMARY KEY, account INT, amount DECIMAL(12, 2), booked DATE);
INSERT INTO account SELECT x, 'owner ' || x, x * 7 FROM SYSTEM_RANGE(1, 5000);
INSERT INTO booking SELECT x, MOD(x * 31, 5000) + 1, MOD(x, 997) - 498, DATEADD('DAY', MOD(x, 365), DATE '2026-01-01')
    FROM SYSTEM_RANGE(1, 60000);
CREATE INDEX booking_account ON booking(account);
UPDATE account SET balance = balance + (SELECT SUM(b.amount) FROM booking b WHERE b.account = account.id);
CREATE TABLE monthly AS SELECT a.owner, MONTH(b.booked) AS booked, SUM(b.amount) AS amount
    FROM account a JOIN booking b ON b.account = a.id GROUP BY a.owner, MONTH(b.booked) ORDER BY amount DESC;
DELETE FROM booking WHERE amount < 0;
SELECT owner, COUNT(*) FROM monthly WHERE amount > 100 GROUP BY owner HAVING COUNT(*) > 2 ORDER BY owner;
END
    runs org.h2.tools.RunScript main -url jdbc:h2:mem: -user sa -script '{here}/script.sql'
}

fetch_xalan() {
    libraries xalan:xalan:2.7.3
    # Its file does not name it.
    from_maven lib xalan:serializer:2.7.3:jar
    awk 'BEGIN {
        srand(5)
        print "<orders>"
        for (at = 0; at < 6000; at++)
            print "<order id=\"" at "\"><customer>" int(rand() * 500) "</customer><amount>" int(rand() * 1000) "</amount></order>"
        print "</orders>"
    }' >orders.xml
    cat >orders.xsl <<'END'
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
    <xsl:key name="of-customer" match="order" use="customer"/>
    <xsl:template match="/orders">
        <html><body>
            <xsl:for-each select="order[generate-id() = generate-id(key('of-customer', customer)[1])]">
                <xsl:sort select="customer" data-type="number"/>
                <h2><xsl:value-of select="customer"/>: <xsl:value-of select="sum(key('of-customer', customer)/amount)"/></h2>
                <ul><xsl:apply-templates select="key('of-customer', customer)"/></ul>
            </xsl:for-each>
        </body></html>
    </xsl:template>
    <xsl:template match="order"><li><xsl:value-of select="concat(@id, ' ', format-number(amount, '#,##0.00'))"/></li></xsl:template>
</xsl:stylesheet>
END
    runs org.apache.xalan.xslt.Process main -IN '{here}/orders.xml' -XSL '{here}/orders.xsl' -OUT '{out}/orders.html'
}

fetch_pmd() {
    libraries net.sourceforge.pmd:pmd-java:6.55.0
    as_package unzip unzip
    from_maven . org.apache.commons:commons-lang3:3.12.0:jar:sources
    unzip -q commons-lang3-3.12.0-sources.jar -d sources
    rm ./*.jar
    runs net.sourceforge.pmd.PMD runPmd -d '{here}/sources' -R rulesets/java/quickstart.xml -f text -r '{out}/report' --no-cache -t 2
}

# source_of COUNT: COUNT modules with types, pattern matching, givens and collections, which is what a compiler works on.
source_of() {
    local i
    echo 'package shapes'
    for ((i = 0; i < $1; i++)); do
        cat <<END

sealed trait Shape$i derives CanEqual:
  def area: Double
  def scaled(by: Double): Shape$i
case class Circle$i(radius: Double) extends Shape$i:
  def area = math.Pi * radius * radius
  def scaled(by: Double) = copy(radius = radius * by)
case class Box$i(width: Double, height: Double) extends Shape$i:
  def area = width * height
  def scaled(by: Double) = Box$i(width * by, height * by)
case class Group$i[+A <: Shape$i](parts: List[A], name: Option[String] = None) extends Shape$i:
  def area = parts.map(_.area).sum
  def scaled(by: Double) = Group$i(parts.map(_.scaled(by)), name)

trait Shown$i[A]:
  extension (a: A) def shown: String
object Shown$i:
  given Shown$i[Shape$i] with
    extension (shape: Shape$i) def shown = shape match
      case Circle$i(radius) if radius > 1 => s"a circle of \$radius"
      case Circle$i(_) => "a dot"
      case Box$i(width, height) if width == height => s"a square of \$width"
      case Box$i(width, height) => s"\$width by \$height"
      case Group$i(parts, name) => parts.map(_.shown).mkString(name.getOrElse(""), ", ", ";")
  given [A](using inner: Shown$i[A]): Shown$i[List[A]] with
    extension (list: List[A]) def shown = list.map(inner.shown).mkString("[", " ", "]")

object Work$i:
  import Shown$i.given
  def all(count: Int): Map[String, Seq[Double]] =
    val shapes = for
      i <- 1 to count
      shape <- List[Shape$i](Circle$i(i), Box$i(i, i + 1), Group$i(List(Circle$i(i), Box$i(1, i)), Some("g")))
      if shape.area > 2
    yield shape.scaled(0.5)
    shapes.groupBy(_.shown.take(3)).view.mapValues(_.map(_.area).sorted.toIndexedSeq).toMap
  def folded(count: Int): Either[String, Double] =
    (1 to count).foldLeft[Either[String, Double]](Right(0.0)) { (sum, i) =>
      for before <- sum; one <- Either.cond(i >= 0, Circle$i(i).area, s"below \$i") yield before + one
    }
END
    done
}
