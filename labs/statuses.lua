-- wrk: prints the answers by status and the failures as one line of JSON.
local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init()
    statuses = {}
end

function response(status)
    statuses[status] = (statuses[status] or 0) + 1
end

function done(summary)
    local fields = {}
    for _, thread in ipairs(threads) do
        for status, count in pairs(thread:get("statuses")) do
            table.insert(fields, string.format('"%d": %d', status, count))
        end
    end
    for kind, count in pairs(summary.errors) do
        if kind ~= "status" then
            table.insert(fields, string.format('"%s": %d', kind, count))
        end
    end
    io.write("{" .. table.concat(fields, ", ") .. "}\n")
end
