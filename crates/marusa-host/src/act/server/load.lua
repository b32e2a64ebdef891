-- The load on a DayTrader server, for wrk: each of its threads is one client, with a session of its own, that asks for the next
-- step of the scenario (log in, look, buy, sell, log out, and again). Without the cookie each request would be a new session, and
-- the server would keep them all for half an hour.
--
-- Without an argument a client asks as soon as it has the answer to the last. With one, the microseconds between two requests of
-- a client, it asks at fixed moments, whether or not the server keeps up: what is asked late because an answer was late is measured
-- from the moment at which it was due, as wrk2 does (github.com/giltene/wrk2), or a stop of the server would slow the load down.
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds, nanoseconds; } moment; int clock_gettime(int clock, moment *into);")
local CLOCK_MONOTONIC = 1
-- wrk's timers are of milliseconds: a request that is no later than this is measured from when it was sent.
local LATE_US = 2000
local moment, threads = ffi.new("moment"), {}
local cookie, due, sent

local function now()
    ffi.C.clock_gettime(CLOCK_MONOTONIC, moment)
    return tonumber(moment.seconds) * 1e6 + tonumber(moment.nanoseconds) / 1e3
end

-- Clients begin one after the other within the first interval: wrk asks for the delay of the first request, too.
local function at_fixed_moments()
    due = now() + interval * (client - 1)
    latencies = {}
    function delay()
        due = due + interval
        return math.max(0, math.ceil((due - now()) / 1000))
    end
end

function setup(thread)
    threads[#threads + 1] = thread
    thread:set("client", math.random())
end

function init(args)
    interval = tonumber(args[1])
    if interval then at_fixed_moments() end
end

function request()
    if cookie then wrk.headers["Cookie"] = cookie end
    sent = now()
    return wrk.format()
end

function response(status, headers, body)
    local set = headers["Set-Cookie"] or headers["set-cookie"]
    if set then cookie = set:match("^[^;]+") end
    if interval then
        latencies[#latencies + 1] = math.floor(now() - (sent - due > LATE_US and due or sent))
    end
end

-- Latencies of all clients, as wrk has them.
local function of_all()
    local all, sum = {}, 0
    for _, thread in ipairs(threads) do
        for _, latency in ipairs(thread:get("latencies")) do
            all[#all + 1] = latency
            sum = sum + latency
        end
    end
    table.sort(all)
    return {
        mean = #all > 0 and sum / #all or 0,
        max = all[#all] or 0,
        percentile = function(_, share) return all[math.max(1, math.ceil(#all * share / 100))] or 0 end,
    }
end

function done(summary, latency, requests)
    local errors = summary.errors
    if threads[1]:get("interval") then latency = of_all() end
    io.write(string.format(
        'marusa {"requests":%d,"duration_us":%d,"status_errors":%d,"socket_errors":%d,"timeouts":%d,"mean_us":%.1f,"p50_us":%d,'
            .. '"p90_us":%d,"p99_us":%d,"p999_us":%d,"max_us":%d}\n',
        summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write, errors.timeout,
        latency.mean, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9),
        latency.max))
end
