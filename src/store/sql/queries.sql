-- memory: who has the memory of the fleet now: resident bytes by program and area, from the last account of each JVM in two hours.
WITH recent AS (
  SELECT jvm_id, time, coalesce(workload, main, 'unknown') AS program, area, resident_bytes
  FROM account
  WHERE subject = 'area' AND {date} >= {yesterday}
    AND time >= (SELECT max(last_seen) FROM jvm WHERE {date} >= {yesterday}) - {two_hours}
), last AS (
  SELECT jvm_id, max(time) AS moment FROM recent GROUP BY jvm_id
)
SELECT recent.program AS program, recent.area AS area, count(*) AS jvms, sum(recent.resident_bytes) AS bytes
FROM recent JOIN last ON last.jvm_id = recent.jvm_id AND last.moment = recent.time
GROUP BY recent.program, recent.area
ORDER BY bytes DESC NULLS LAST, program, area;

-- sizing: for each program, JVM and day the moment that needed most besides the Java heap, and what it needed then.
WITH needs AS (
  SELECT jvm_id, time, {date} AS day, coalesce(page_table_bytes, 0) AS table_bytes,
         outside_heap_bytes + coalesce(page_table_bytes, 0) AS bytes
  FROM process
  WHERE outside_heap_bytes IS NOT NULL AND {date} >= {last_week}
), most AS (
  SELECT jvm_id, day, max(bytes) AS bytes FROM needs GROUP BY jvm_id, day
), peaks AS (
  SELECT needs.jvm_id AS id, needs.day AS day, min(needs.time) AS moment, min(needs.bytes) AS need_bytes,
         min(needs.table_bytes) AS tables_bytes
  FROM needs JOIN most ON most.jvm_id = needs.jvm_id AND most.day = needs.day AND most.bytes = needs.bytes
  GROUP BY needs.jvm_id, needs.day
)
SELECT max(coalesce(account.workload, account.main, 'unknown')) AS program, peaks.day AS day, peaks.id AS id,
       max(account.pod) AS in_pod, peaks.moment AS moment, min(peaks.need_bytes) AS need_bytes,
       sum(CASE WHEN account.area = 'malloc_freed' THEN account.resident_bytes ELSE 0 END) AS freed_bytes,
       sum(CASE WHEN account.area = 'direct_buffers' THEN account.resident_bytes ELSE 0 END) AS direct_bytes,
       sum(CASE WHEN account.area = 'class_metadata' THEN account.resident_bytes ELSE 0 END) AS class_bytes,
       sum(CASE WHEN account.area = 'stack' THEN account.resident_bytes ELSE 0 END) AS stack_bytes,
       min(peaks.tables_bytes) AS tables_bytes
FROM peaks JOIN account ON account.time = peaks.moment AND account.jvm_id = peaks.id
WHERE account.subject = 'area'
GROUP BY peaks.day, peaks.id, peaks.moment
ORDER BY program, day, id;

-- growth: mean resident bytes by program, area and image, with the time at which each image was first seen.
WITH images AS (
  SELECT jvm_id, max(coalesce(workload, main, 'unknown')) AS program, max(coalesce(image, java_version)) AS image, min(time) AS since
  FROM jvm
  WHERE {date} >= {last_week}
  GROUP BY jvm_id
), areas AS (
  SELECT jvm_id, area, sum(resident_bytes) AS bytes, count(resident_bytes) AS moments
  FROM account
  WHERE subject = 'area' AND {date} >= {last_week}
  GROUP BY jvm_id, area
)
SELECT images.program AS program, areas.area AS area, images.image AS image, min(images.since) AS first_seen, count(*) AS jvms,
       sum(areas.bytes) * 1.0E0 / sum(areas.moments) AS mean_bytes
FROM areas JOIN images ON images.jvm_id = areas.jvm_id
GROUP BY images.program, areas.area, images.image
ORDER BY program, area, first_seen, image NULLS LAST;

-- freed: memory that malloc holds although it is free, what it could return, and its arenas, at the worst moment of each program.
WITH freed AS (
  SELECT coalesce(workload, main, 'unknown') AS program, jvm_id, time, resident_bytes AS bytes
  FROM account
  WHERE subject = 'area' AND area = 'malloc_freed' AND {date} >= {last_week}
), most AS (
  SELECT program, max(bytes) AS bytes FROM freed GROUP BY program
), ranked AS (
  SELECT freed.program AS program, freed.jvm_id AS id, freed.time AS moment, freed.bytes AS freed_bytes,
         row_number() OVER (PARTITION BY freed.program ORDER BY freed.time, freed.jvm_id) AS place
  FROM freed JOIN most ON most.program = freed.program AND most.bytes = freed.bytes
), worst AS (
  SELECT program, id, moment, freed_bytes FROM ranked WHERE place = 1
)
SELECT worst.program AS program, worst.id AS id, worst.moment AS moment, worst.freed_bytes AS freed_bytes,
       process.trimmable_bytes AS trimmable, process.malloc_arenas AS arenas
FROM worst JOIN process ON process.time = worst.moment AND process.jvm_id = worst.id
ORDER BY freed_bytes DESC, program;

-- huge-pages: how much of the Java heaps is in huge pages, by kernel.
WITH heaps AS (
  SELECT jvm_id, time, resident_bytes, huge_bytes
  FROM account
  WHERE subject = 'area' AND area = 'java_heap' AND {date} >= {last_week}
), last AS (
  SELECT jvm_id, max(time) AS moment FROM heaps GROUP BY jvm_id
), kernels AS (
  SELECT jvm_id, max(kernel) AS release FROM jvm WHERE {date} >= {last_week} GROUP BY jvm_id
)
SELECT kernels.release AS release, count(*) AS jvms, sum(heaps.resident_bytes) AS heap_bytes, sum(heaps.huge_bytes) AS in_huge_pages
FROM heaps JOIN last ON last.jvm_id = heaps.jvm_id AND last.moment = heaps.time JOIN kernels ON kernels.jvm_id = heaps.jvm_id
GROUP BY kernels.release
ORDER BY release NULLS LAST;

-- killed: all areas within the last 60 s before a JVM was OOM-killed.
WITH killed AS (
  SELECT jvm_id, main, pod, ended FROM jvm WHERE ending = 'oom_killed' AND {date} >= {last_week}
)
SELECT killed.main AS program, killed.pod AS in_pod, killed.ended AS killed_at, account.time AS moment, account.area AS of_area,
       account.resident_bytes AS bytes
FROM killed JOIN account ON account.jvm_id = killed.jvm_id
WHERE account.subject = 'area' AND account.time >= killed.ended - {sixty_seconds} AND account.time <= killed.ended
ORDER BY killed_at, program NULLS LAST, moment, bytes DESC NULLS LAST, of_area;

-- defects: what the doctor found, by version of Java; jdk-known-fix is a JDK with a known defect.
WITH versions AS (
  SELECT jvm_id, max(java_version) AS version FROM jvm WHERE {date} >= {last_week} GROUP BY jvm_id
), found AS (
  SELECT jvm_id, id, level, cost_bytes FROM finding WHERE {date} >= {last_week}
)
SELECT versions.version AS version, found.id AS finding, found.level AS how, count(DISTINCT found.jvm_id) AS jvms,
       max(found.cost_bytes) AS cost
FROM found JOIN versions ON versions.jvm_id = found.jvm_id
GROUP BY versions.version, found.id, found.level
ORDER BY jvms DESC, finding, how, version NULLS LAST;
