-- The load on a DayTrader server, for wrk: each of its threads is one client, with a session of its own, that asks for the next
-- step of the scenario (log in, look, buy, sell, log out, and again) as soon as it has the answer to the last. Without the cookie
-- each request would be a new session, and the server would keep them all for half an hour.
local cookie

function request()
    if cookie then wrk.headers["Cookie"] = cookie end
    return wrk.format()
end

function response(status, headers, body)
    local set = headers["Set-Cookie"] or headers["set-cookie"]
    if set then cookie = set:match("^[^;]+") end
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        'marusa {"requests":%d,"duration_us":%d,"status_errors":%d,"socket_errors":%d,"timeouts":%d,"mean_us":%.1f,"p50_us":%d,'
            .. '"p90_us":%d,"p99_us":%d,"p999_us":%d,"max_us":%d}\n',
        summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write, errors.timeout,
        latency.mean, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9),
        latency.max))
end
