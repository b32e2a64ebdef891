# How DayTrader 2.1.7 gets onto TomEE 8: from Maven Central into the current directory. To be sourced after fetch.bash by
# scripts/workloads; `marusa bench` has both inside (crates/marusa-host/src/act/server/recipe.rs).

# The enterprise archive as one web application, with the Derby inside: TomEE does not deploy it as it comes.
fetch_daytrader() {
    as_package unzip unzip
    from_maven . org.apache.geronimo.daytrader:daytrader-ear:2.1.7:ear
    from_maven . org.apache.tomee:apache-tomee:8.0.6:tar.gz:plus
    from_maven . org.apache.derby:derby:10.14.2.0:jar
    mkdir tomee ear
    tar -xzf apache-tomee-8.0.6-plus.tar.gz -C tomee --strip-components 1
    unzip -q daytrader-ear-2.1.7.ear -d ear
    local web=tomee/webapps/daytrader/WEB-INF
    unzip -q ear/web.war -d tomee/webapps/daytrader
    mkdir -p $web/lib
    mv ear/{dt-ejb,wsappclient,streamer,geronimo-jaxrpc*}.jar $web/lib
    mv derby-10.14.2.0.jar tomee/lib
    sed -i '/<message-destination-link>/d; /<service-ref>/,/<\/service-ref>/d' $web/web.xml
    sed -i 's/port="8/port="28/; s/redirectPort="8/redirectPort="28/; s/<Connector /&address="127.0.0.1" /' \
        tomee/conf/server.xml
    {
        echo '<tomee>'
        data_source jdbc/TradeDataSource true
        data_source jdbc/NoTxTradeDataSource false
        echo '</tomee>'
    } >tomee/conf/tomee.xml
    rm -rf ear ./*.ear ./*.gz
}

data_source() {
    cat <<END
<Resource id="$1" type="DataSource">
    JdbcDriver org.apache.derby.jdbc.EmbeddedDriver
    JdbcUrl jdbc:derby:tradedb;create=true
    JtaManaged $2
</Resource>
END
}
