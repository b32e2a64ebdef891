//! The names that people know servers and tools by: "Kafka" for `kafka.Kafka`. A launcher class says nothing of what it launches
//! (`org.apache.catalina.startup.Bootstrap`), and that is what lists of JVMs would show. The main class stays what it is: this name
//! comes next to it.

use crate::base::limits::JAR_START_BYTES_MAX;
use crate::os::open_files;
use crate::os::process::Process;

/// Shown with the name of the jar where there is one.
const SPRING_BOOT: &str = "Spring Boot";
/// In the names of the first entries of a jar that Spring Boot's plugins for Maven and Gradle built: the manifest, then these.
const SPRING_BOOT_LOADER: &[u8] = b"org/springframework/boot/loader/";

/// The main class without its module, or the file name of the jar, `*` for any rest; the start of a `-D` option that must be there
/// (empty: none); the name. The first that fits counts.
const SERVERS: &[(&str, &str, &str)] = &[
    ("*", "kc.home.dir", "Keycloak"),
    ("*", "solr.solr.home", "Solr"),
    ("*", "solr.install.dir", "Solr"),
    ("*", "eclipse.application=org.eclipse.jdt.ls", "Eclipse language server"),
    ("*", "idea.paths.selector=", "IntelliJ"),
    ("kafka.Kafka", "", "Kafka"),
    ("kafka.docker.KafkaDockerWrapper", "", "Kafka"),
    ("org.apache.kafka.connect.cli.Connect*", "", "Kafka Connect"),
    ("org.apache.kafka.connect.mirror.MirrorMaker", "", "Kafka MirrorMaker"),
    ("io.confluent.kafka.schemaregistry.rest.SchemaRegistryMain", "", "Schema Registry"),
    ("org.apache.zookeeper.server.*", "", "ZooKeeper"),
    ("org.elasticsearch.bootstrap.Elasticsearch", "", "Elasticsearch"),
    ("org.elasticsearch.server.cli.*", "", "Elasticsearch launcher"),
    ("org.elasticsearch.launcher.CliToolLauncher", "", "Elasticsearch launcher"),
    ("org.opensearch.bootstrap.OpenSearch", "", "OpenSearch"),
    ("org.logstash.Logstash", "", "Logstash"),
    ("org.apache.catalina.startup.Bootstrap", "", "Tomcat"),
    ("org.eclipse.jetty.*", "", "Jetty"),
    ("start.jar", "jetty.", "Jetty"),
    ("org.jboss.modules.Main", "jboss.home.dir", "WildFly"),
    ("jboss-modules.jar", "jboss.home.dir", "WildFly"),
    ("org.jboss.as.process-controller", "", "WildFly"),
    ("com.sun.enterprise.glassfish.bootstrap.*", "", "GlassFish"),
    ("payara-micro*", "", "Payara Micro"),
    ("weblogic.Server", "", "WebLogic"),
    ("com.ibm.ws.kernel.boot.cmdline.EnvCheck", "", "Open Liberty"),
    ("ws-server.jar", "", "Open Liberty"),
    ("org.springframework.boot.loader.*", "", SPRING_BOOT),
    ("*.jar", "spring.", SPRING_BOOT),
    ("io.quarkus.bootstrap.runner.QuarkusEntryPoint", "", "Quarkus"),
    ("quarkus-run.jar", "", "Quarkus"),
    ("org.apache.karaf.main.Main", "", "Karaf"),
    ("org.apache.cassandra.service.CassandraDaemon", "", "Cassandra"),
    ("org.apache.spark.deploy.SparkSubmit", "", "Spark driver"),
    ("org.apache.spark.deploy.worker.DriverWrapper", "", "Spark driver"),
    ("org.apache.spark.deploy.yarn.ApplicationMaster", "", "Spark driver"),
    ("org.apache.spark.deploy.yarn.ExecutorLauncher", "", "Spark on YARN"),
    ("org.apache.spark.deploy.master.Master", "", "Spark master"),
    ("org.apache.spark.deploy.worker.Worker", "", "Spark worker"),
    ("org.apache.spark.deploy.history.HistoryServer", "", "Spark history server"),
    ("org.apache.spark.executor.*ExecutorBackend", "", "Spark executor"),
    ("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend", "", "Spark executor"),
    ("org.apache.flink.*ClusterEntrypoint", "", "Flink JobManager"),
    ("org.apache.flink.*ClusterEntryPoint", "", "Flink JobManager"),
    ("org.apache.flink.*TaskManagerRunner", "", "Flink TaskManager"),
    ("org.apache.flink.*TaskExecutorRunner", "", "Flink TaskManager"),
    ("org.apache.hadoop.hdfs.server.namenode.NameNode", "", "HDFS NameNode"),
    ("org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode", "", "HDFS SecondaryNameNode"),
    ("org.apache.hadoop.hdfs.server.datanode.DataNode", "", "HDFS DataNode"),
    ("org.apache.hadoop.hdfs.qjournal.server.JournalNode", "", "HDFS JournalNode"),
    ("org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", "", "YARN ResourceManager"),
    ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", "", "YARN NodeManager"),
    ("org.apache.hadoop.mapred.YarnChild", "", "MapReduce task"),
    ("org.apache.hadoop.mapreduce.v2.app.MRAppMaster", "", "MapReduce master"),
    ("org.apache.hadoop.hbase.master.HMaster", "", "HBase master"),
    ("org.apache.hadoop.hbase.regionserver.HRegionServer", "", "HBase region server"),
    ("activemq.jar", "", "ActiveMQ"),
    ("org.apache.activemq.artemis.boot.Artemis", "", "ActiveMQ Artemis"),
    ("jenkins.war", "", "Jenkins"),
    ("hudson.remoting.*", "", "Jenkins agent"),
    ("remoting.jar", "", "Jenkins agent"),
    ("org.gradle.launcher.daemon.bootstrap.GradleDaemon", "", "Gradle daemon"),
    ("worker.org.gradle.process.internal.worker.GradleWorkerMain", "", "Gradle worker"),
    ("org.gradle.*", "", "Gradle"),
    ("gradle-wrapper.jar", "", "Gradle"),
    ("org.codehaus.plexus.classworlds.launcher.Launcher", "", "Maven"),
    ("org.apache.maven.surefire.booter.ForkedBooter", "", "Maven Surefire"),
    ("surefirebooter*", "", "Maven Surefire"),
    ("org.jetbrains.kotlin.daemon.KotlinCompileDaemon", "", "Kotlin daemon"),
    ("com.intellij.idea.Main", "", "IntelliJ"),
    ("org.eclipse.equinox.launcher*", "", "Eclipse"),
    ("org.neo4j.server.*", "", "Neo4j"),
    ("com.neo4j.server.*", "", "Neo4j"),
    ("io.trino.server.TrinoServer", "", "Trino"),
    ("com.facebook.presto.server.PrestoServer", "", "Presto"),
    ("org.apache.pulsar.Pulsar*", "", "Pulsar"),
    ("org.apache.bookkeeper.server.Main", "", "BookKeeper"),
    ("org.apache.nifi.NiFi", "", "NiFi"),
    ("org.apache.druid.cli.Main", "", "Druid"),
    ("org.apache.ignite.startup.cmdline.CommandLineStartup", "", "Ignite"),
    ("com.hazelcast.core.server.HazelcastMemberStarter", "", "Hazelcast"),
];

/// Starts of the main classes of the tools of a JDK that end by themselves, and the tool by its launcher where there is one class
/// for several.
const JDK_TOOLS: &[(&str, &str)] = &[
    // Not `com.sun.tools.javac.launcher`, which runs a program of one source file.
    ("com.sun.tools.javac.Main", "javac"),
    ("com.sun.tools.jdeps.", "jdeps"),
    ("com.sun.tools.javap.", "javap"),
    ("jdk.javadoc.internal.tool.", "javadoc"),
    ("com.sun.tools.javadoc.", "javadoc"),
    ("sun.tools.jcmd.", "jcmd"),
    ("sun.tools.jps.", "jps"),
    ("sun.tools.jstat.", "jstat"),
    ("sun.tools.jmap.", "jmap"),
    ("sun.tools.jstack.", "jstack"),
    ("sun.tools.jinfo.", "jinfo"),
    ("sun.tools.jar.", "jar"),
    ("sun.security.tools.keytool.", "keytool"),
    ("sun.security.tools.jarsigner.", "jarsigner"),
    ("jdk.tools.jlink.", "jlink"),
    ("jdk.tools.jmod.", "jmod"),
    ("jdk.jfr.internal.tool.", "jfr"),
];

/// `name`, of a running process: a jar of Spring Boot is known by its own launcher classes, which no argument names.
pub fn name_of(process: &Process, main: &str, arguments: &[String]) -> Option<String> {
    let jar = last(main);
    let is_spring_boot = || {
        let start = open_files::start(process, jar, JAR_START_BYTES_MAX)?;
        start.windows(SPRING_BOOT_LOADER.len()).any(|bytes| bytes == SPRING_BOOT_LOADER).then_some(())
    };
    let by_jar = || is_spring_boot().map(|()| format!("{SPRING_BOOT} {jar}"));
    name(main, arguments).or_else(|| jar.ends_with(".jar").then(by_jar).flatten())
}

/// The name of the server or tool that a JVM runs, by its main class, jar or module and its arguments, the command's own first.
/// `None`: a program of the user's own.
pub fn name(main: &str, arguments: &[String]) -> Option<String> {
    // What comes after the main class is of the program, which may say anything.
    let end = super::command_line::program_at(arguments).unwrap_or(arguments.len());
    let options = &arguments[..end.min(arguments.len())];
    let is_set =
        |start: &str| options.iter().filter_map(|it| it.strip_prefix("-D")).any(|it| it.starts_with(start));
    let last = last(main);
    let fits = |(pattern, property, _): &&(&str, &str, &str)| {
        matches(pattern, last) && (property.is_empty() || is_set(property))
    };
    let (.., name) = SERVERS.iter().find(fits)?;
    let jar = || [last].into_iter().chain(class_path(options)).find(|name| name.ends_with(".jar"));
    match (*name, jar()) {
        (SPRING_BOOT, Some(jar)) => Some(format!("{SPRING_BOOT} {}", self::last(jar))),
        _ => Some(name.to_string()),
    }
}

/// "javac": a tool of the JDK that ends soon, by its main class.
pub fn jdk_tool(main: &str) -> Option<&'static str> {
    let last = last(main);
    let tool = JDK_TOOLS.iter().find(|(start, tool)| last.starts_with(start) || last == *tool);
    tool.map(|(_, tool)| *tool)
}

/// The class of "module/class", the file of a path.
fn last(main: &str) -> &str {
    main.rsplit('/').next().unwrap_or(main)
}

/// `*` stands for any letters, once.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    }
}

fn class_path(options: &[String]) -> Option<&str> {
    let at = options.iter().position(|it| matches!(it.as_str(), "-cp" | "-classpath" | "--class-path"))?;
    options.get(at + 1)?.split(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(main: &str, options: &str) -> Option<String> {
        let words = format!("java {options} {main}");
        name(main, &words.split(' ').filter(|word| !word.is_empty()).map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn servers_by_class_jar_module_and_property() {
        let name = |main, options| of(main, options).unwrap_or_default();
        assert_eq!(name("kafka.Kafka", ""), "Kafka");
        assert_eq!(
            name("org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch", ""),
            "Elasticsearch"
        );
        assert_eq!(
            name("io.quarkus.bootstrap.runner.QuarkusEntryPoint", "-Dkc.home.dir=/opt/keycloak"),
            "Keycloak"
        );
        assert_eq!(name("io.quarkus.bootstrap.runner.QuarkusEntryPoint", "-Xmx1g"), "Quarkus");
        assert_eq!(name("start.jar", "-Djetty.base=/srv"), "Jetty");
        assert_eq!(name("start.jar", "-Dsolr.solr.home=/srv -Djetty.port=8983"), "Solr");
        assert_eq!(name("/opt/jboss-modules.jar", "-Djboss.home.dir=/opt/wildfly"), "WildFly");
        assert_eq!(name("org.apache.flink.yarn.entrypoint.YarnJobClusterEntrypoint", ""), "Flink JobManager");
        assert_eq!(name("org.apache.spark.executor.CoarseGrainedExecutorBackend", ""), "Spark executor");
    }

    #[test]
    fn spring_boot_has_the_name_of_its_jar() {
        let launcher = "org.springframework.boot.loader.launch.JarLauncher";
        assert_eq!(of(launcher, "-cp /app/orders.jar").as_deref(), Some("Spring Boot orders.jar"));
        assert_eq!(of(launcher, "-cp classes").as_deref(), Some("Spring Boot"));
        assert_eq!(
            of("/app/orders.jar", "-Dspring.profiles.active=prod").as_deref(),
            Some("Spring Boot orders.jar")
        );
    }

    #[test]
    fn a_program_of_the_users_own_has_no_such_name() {
        assert_eq!(of("com.example.Main", "-Dserver=kafka.Kafka"), None);
        assert_eq!(of("start.jar", ""), None);
        assert_eq!(of("/kafka.Kafka/app.jar", ""), None);
        assert_eq!((of("", ""), name("kafka.Kafka", &[])), (None, Some("Kafka".to_string())));
        // An argument of the program is not an option of the JVM.
        let words = ["java", "com.example.Main", "-Dkc.home.dir=/x"].map(str::to_string);
        assert_eq!(name("com.example.Main", &words), None);
    }

    #[test]
    fn tools_of_a_jdk_that_end_soon() {
        assert_eq!(jdk_tool("jdk.compiler/com.sun.tools.javac.Main"), Some("javac"));
        assert_eq!(jdk_tool("jdk.compiler/com.sun.tools.javac.launcher.Main"), None);
        assert_eq!(jdk_tool("com.sun.tools.javac.Main"), Some("javac"));
        assert_eq!((jdk_tool("jcmd"), jdk_tool("sun.tools.jps.Jps")), (Some("jcmd"), Some("jps")));
        assert_eq!(
            (jdk_tool("com.example.jcmd"), jdk_tool("sun.tools.jconsole.JConsole"), jdk_tool("")),
            (None, None, None)
        );
    }

    #[test]
    fn each_pattern_can_be_reached() {
        for (pattern, property, name) in SERVERS {
            let main = pattern.replace('*', "x");
            let options = if property.is_empty() { String::new() } else { format!("-D{property}") };
            assert!(of(&main, &options).is_some_and(|it| it.starts_with(name)), "{pattern}: {name}");
        }
    }
}
