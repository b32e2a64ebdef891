use super::*;

fn of(text: &str) -> String {
    redacted(&text.split(' ').map(str::to_string).collect::<Vec<_>>()).join(" ")
}

#[test]
fn names_of_properties_stay_and_their_values_go() {
    assert_eq!(of("java -Dpassword=hunter2 -Dplain Main"), "java -Dpassword=… -Dplain Main");
    assert_eq!(of("/jdk/bin/java -Da=b=c -jar /srv/app.jar"), "/jdk/bin/java -Da=… -jar /srv/app.jar");
    let words = ["java", "-Dname=John Smith", "-jar", "a b.jar", "x y"].map(str::to_string);
    assert_eq!(redacted(&words), ["java", "-Dname=…", "-jar", "a b.jar", "…"]);
}

#[test]
fn sizes_and_switches_of_the_vm_stay_and_its_texts_go() {
    for kept in [
        "-Xmx4g",
        "-Xss512k",
        "-XX:+UseG1GC",
        "-XX:-UsePerfData",
        "-XX:MaxHeapSize=2147483648",
        "-XX:MaxRAMPercentage=25.0",
        "-XX:HeapBaseMinAddress=0x100000000",
        "-XX:NativeMemoryTracking=summary",
        "-Xshare:auto",
        "-Xint",
        "-server",
        "-ea:com.example...",
        "-verbose:gc",
        "--enable-preview",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
    ] {
        assert_eq!(of(&format!("java {kept} Main")), format!("java {kept} Main"));
    }
    for (given, shown) in [
        ("-XX:OnError=curl", "-XX:OnError=…"),
        ("-XX:HeapDumpPath=/home/alice", "-XX:HeapDumpPath=…"),
        ("-XX:Flags=.hotspotrc", "-XX:Flags=…"),
        ("-XX:hunter 2", "-XX:…"),
        ("-Xlog:gc*:file=/var/log/alice", "-Xlog:…"),
        ("-Xloggc:/tmp/alice", "-Xloggc:…"),
        ("-Xbootclasspath/a:/tmp/x", "-Xbootclasspath/a:…"),
        ("-Xmxhunter2:", "-Xmxhunter2:…"),
        ("-javaagent:/opt/apm.jar=key=hunter2", "-javaagent:/opt/apm.jar=…"),
        ("-javaagent:/opt/apm.jar", "-javaagent:/opt/apm.jar"),
        ("-agentlib:jdwp=transport=dt_socket", "-agentlib:jdwp=…"),
        ("-agentpath:/opt/x.so=pw", "-agentpath:/opt/x.so=…"),
        ("-ea:hunter2=x", "-ea:…"),
        ("-XX:+hunter 2", "-XX:…"),
        ("-XX:=x", "-XX:…"),
        ("-splash:/tmp/x", "-splash:…"),
    ] {
        assert_eq!(redacted(&["java".into(), given.into()])[1], shown, "{given}");
    }
}

#[test]
fn class_paths_and_files_of_arguments_go_and_modules_stay() {
    assert_eq!(of("java -cp /home/alice/a.jar Main"), "java -cp … Main");
    assert_eq!(of("java -p /home/alice --module app/a.Main x"), "java -p … --module app/a.Main …");
    assert_eq!(
        of("java --add-opens java.base/java.lang=ALL-UNNAMED Main"),
        "java --add-opens java.base/java.lang=ALL-UNNAMED Main"
    );
    assert_eq!(of("java --module=app/a.Main x"), "java --module=app/a.Main …");
    // The file may name the main class, so the next word may be the program's.
    assert_eq!(of("java @/home/alice/opts hunter2"), "java @… …");
}

#[test]
fn of_a_programs_arguments_only_names_of_options_are_left() {
    assert_eq!(of("java Main --token=hunter2 --token hunter2"), "java Main --token=… --token …");
    assert_eq!(of("java -jar a.jar -phunter2 -p hunter2 name=hunter2"), "java -jar a.jar … -p … …");
    assert_eq!(of("java Main -Dpassword=hunter2 jdbc:x://u:p@h/d"), "java Main -Dpassword=… …");
    assert_eq!(of("java Main --password -hunter2=="), "java Main --password …", "a value with a dash");
    assert_eq!(of("java Main --a b --c=d -- hunter2"), "java Main --a … --c=… -- …");
    assert_eq!(of("java Main -- -v"), "java Main -- …");
}

#[test]
fn what_is_not_java_keeps_its_name() {
    assert_eq!(of("./run.sh start --key=hunter2"), "./run.sh … --key=…");
    assert_eq!(of("env PASSWORD=hunter2 /jdk/bin/java -Da=b Main c"), "env … /jdk/bin/java -Da=… Main …");
    let title = ["postgres: alice db [local]".to_string()];
    assert_eq!(redacted(&title), ["postgres: …"]);
    assert_eq!(redacted(&[]), Vec::<String>::new());
    assert_eq!((is_java("/usr/bin/java"), is_java("javac")), (true, false));
}

#[test]
fn what_a_runtime_says_itself_is_redacted_as_a_command_is() {
    let options = ["-Xmx64m", "-Dpassword=hunter2", "-Dtwo=a -Xhunter2", "-XX:OnError=hunter2"];
    let options = options.map(str::to_string);
    assert_eq!(
        redacted_runtime("/opt/my app/server", &options, "com.example.Main --token=hunter2 hunter2")
            .join(" "),
        "/opt/my app/server -Xmx64m -Dpassword=… -Dtwo=… -XX:OnError=… com.example.Main --token=… …"
    );
    assert_eq!(redacted_runtime("server", &[], ""), ["server"]);
}

#[test]
fn variables_and_urls() {
    assert_eq!(
        redacted_variable("JAVA_TOOL_OPTIONS", "-Xmx1g -Dp='a hunter2' -cp x"),
        "-Xmx1g -Dp=… … -cp …"
    );
    assert_eq!(redacted_variable("PASSWORD", "hunter2"), "…");
    assert_eq!(redacted_variable("MALLOC_ARENA_MAX", "2"), "2");
    assert_eq!(redacted_url("http://alice:hunter2@localhost:8080/a?b=c"), "http://localhost:8080/…");
    assert_eq!(redacted_url("https://h?token=x"), "https://h/…");
    assert_eq!(
        (redacted_url("http://h/"), redacted_url("hunter2")),
        ("http://h/".to_string(), "…".to_string())
    );
    let words = ["-Xmx1g", "--token", "hunter2", "-Da=b"].map(str::to_string);
    assert_eq!(redacted_options(&words), ["-Xmx1g", "--token", "…", "-Da=…"]);
}
