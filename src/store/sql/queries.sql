-- memory: who has the memory of the fleet now: resident bytes by program and area, from the last account of each JVM.
WITH last AS (
  SELECT jvm_id, coalesce(workload, main) AS program, area, resident_bytes,
         row_number() OVER (PARTITION BY jvm_id, area ORDER BY time DESC) AS place
  FROM account
  WHERE subject = 'area' AND {date} >= {yesterday}
)
SELECT program, area, count(*) AS jvms, sum(resident_bytes) AS bytes
FROM last
WHERE place = 1
GROUP BY program, area
ORDER BY bytes DESC, program, area;

-- sizing: for each program, JVM and day the moment that needed most besides the Java heap, and what it needed then.
WITH areas AS (
  SELECT jvm_id, time, {date} AS day, coalesce(workload, main) AS program, pod, area, resident_bytes
  FROM account
  WHERE subject = 'area'
), sums AS (
  SELECT jvm_id, time, day, program, pod,
         sum(CASE WHEN area NOT IN ('java_heap', 'gc') THEN resident_bytes ELSE 0 END) AS other_bytes,
         sum(CASE WHEN area = 'malloc_freed' THEN resident_bytes ELSE 0 END) AS freed_bytes,
         sum(CASE WHEN area = 'direct_buffers' THEN resident_bytes ELSE 0 END) AS direct_bytes,
         sum(CASE WHEN area = 'class_metadata' THEN resident_bytes ELSE 0 END) AS class_bytes,
         sum(CASE WHEN area = 'stack' THEN resident_bytes ELSE 0 END) AS stack_bytes
  FROM areas
  GROUP BY jvm_id, time, day, program, pod
), needs AS (
  SELECT sums.jvm_id AS jvm_id, sums.time AS time, day, sums.program AS program, sums.pod AS pod, freed_bytes, direct_bytes,
         class_bytes, stack_bytes, coalesce(process.page_table_bytes, 0) AS tables_bytes,
         other_bytes + coalesce(process.page_table_bytes, 0) AS need_bytes
  FROM sums LEFT JOIN process ON process.jvm_id = sums.jvm_id AND process.time = sums.time
), ranked AS (
  SELECT jvm_id, time, day, program, pod, freed_bytes, direct_bytes, class_bytes, stack_bytes, tables_bytes, need_bytes,
         row_number() OVER (PARTITION BY jvm_id, day ORDER BY need_bytes DESC, time) AS place
  FROM needs
)
SELECT program, day, jvm_id, pod, time, need_bytes, freed_bytes, direct_bytes, class_bytes, stack_bytes, tables_bytes
FROM ranked
WHERE place = 1
ORDER BY program, day, jvm_id;

-- growth: mean resident bytes by program, area and image, with the time at which each image was first seen.
WITH images AS (
  SELECT jvm_id, max(coalesce(image, java_version)) AS image, min(time) AS since
  FROM jvm
  GROUP BY jvm_id
), areas AS (
  SELECT coalesce(account.workload, account.main) AS program, images.image AS image, account.area AS area, images.since AS since,
         account.jvm_id AS id, account.resident_bytes AS bytes
  FROM account JOIN images ON images.jvm_id = account.jvm_id
  WHERE account.subject = 'area'
)
SELECT program, area, image, min(since) AS first_seen, count(DISTINCT id) AS jvms, avg(bytes) AS mean_bytes
FROM areas
GROUP BY program, area, image
ORDER BY program, area, first_seen, image;

-- freed: memory that malloc holds although it is free, what it could return, and its arenas, at the worst moment of each program.
WITH freed AS (
  SELECT coalesce(account.workload, account.main) AS program, account.jvm_id AS id, account.time AS moment,
         account.resident_bytes AS freed_bytes, process.trimmable_bytes AS trimmable, process.malloc_arenas AS arenas
  FROM account JOIN process ON process.jvm_id = account.jvm_id AND process.time = account.time
  WHERE account.subject = 'area' AND account.area = 'malloc_freed'
), ranked AS (
  SELECT program, id, moment, freed_bytes, trimmable, arenas,
         row_number() OVER (PARTITION BY program ORDER BY freed_bytes DESC, moment, id) AS place
  FROM freed
)
SELECT program, id, moment, freed_bytes, trimmable, arenas
FROM ranked
WHERE place = 1
ORDER BY freed_bytes DESC, program;

-- huge-pages: how much of the Java heaps is in huge pages, by kernel.
WITH last AS (
  SELECT jvm_id, resident_bytes, huge_bytes, row_number() OVER (PARTITION BY jvm_id ORDER BY time DESC) AS place
  FROM account
  WHERE subject = 'area' AND area = 'java_heap'
), kernels AS (
  SELECT jvm_id, max(kernel) AS release FROM jvm GROUP BY jvm_id
)
SELECT kernels.release AS release, count(*) AS jvms, sum(last.resident_bytes) AS heap_bytes, sum(last.huge_bytes) AS in_huge_pages
FROM last JOIN kernels ON kernels.jvm_id = last.jvm_id
WHERE last.place = 1
GROUP BY kernels.release
ORDER BY release;

-- killed: all areas within the last 60 s before a JVM was OOM-killed.
WITH killed AS (
  SELECT jvm_id, main, pod, ended FROM jvm WHERE ending = 'oom_killed'
)
SELECT killed.main AS program, killed.pod AS in_pod, killed.ended AS killed_at, account.time AS moment, account.area AS of_area,
       account.resident_bytes AS bytes
FROM killed JOIN account ON account.jvm_id = killed.jvm_id
WHERE account.subject = 'area' AND account.time >= killed.ended - {sixty_seconds} AND account.time <= killed.ended
ORDER BY killed_at, program, moment, bytes DESC, of_area;

-- defects: what the doctor found, by version of Java; jdk-known-fix is a JDK with a known defect.
WITH versions AS (
  SELECT jvm_id, max(java_version) AS version FROM jvm GROUP BY jvm_id
)
SELECT versions.version AS version, finding.id AS found, finding.level AS how, count(DISTINCT finding.jvm_id) AS jvms,
       max(finding.cost_bytes) AS cost
FROM finding JOIN versions ON versions.jvm_id = finding.jvm_id
GROUP BY versions.version, finding.id, finding.level
ORDER BY jvms DESC, found, how, version;
