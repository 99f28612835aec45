-- The outbox in Redis. Redis runs one script at a time, from start to end: each call of this script is a transaction,
-- and no client sees a part of it.
--
-- KEYS[1] prefix of all keys; ARGV[1] the verb; ARGV[2] its arguments, as JSON; bytes follow from ARGV[3] on.
--
-- The tables. A row is identified by a lane and a member: the number in 19 digits, the id, and the sink ('' before it
-- is routed), separated by colons. So members are ordered by the number, which is the score in every set, and two
-- messages are never confused: after a failover numbers repeat, ids do not.
--   ready:LANE, ready-row:LANE       a sorted set of members, and a hash of their contents
--   waiting:LANE, row:LANE:MEMBER    a sorted set, and one hash per row; due:LANE sorts the rows with a due time by it
--   dead:LANE, row:LANE:MEMBER       the same for dead letters; blocking:LANE:KEY has those that block their key
--   key:LANE:KEY                     the waiting rows of a key, to keep its order
--   delivered, kept:LANE:MEMBER      delivered messages that are kept
--   history:LANE:MEMBER              failed attempts: three entries each
--   seq, era                         the last number, and the name of the era in which numbers are unique
local P = KEYS[1] .. ':'
local args = cjson.decode(ARGV[2])
local call = redis.call
local clock = call('TIME')
-- Microseconds since the epoch; a Lua number represents them exactly for another two centuries.
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local LANES, COMMON, SPECIAL, FOLLOWERS = 80, 64, 8, 64
local UNROUTED = ''

local function int(number) return string.format('%.0f', number) end
local function seq_of(member) return tonumber(string.sub(member, 1, 19)) end
local function sink_of(member) return string.sub(member, 58) end
local function member_of(seq, id, sink) return string.format('%019.0f', seq) .. ':' .. id .. ':' .. sink end
-- The member of the same message for another sink.
local function with_sink(member, sink) return string.sub(member, 1, 57) .. sink end
local function row_at(lane, member) return P .. 'row:' .. lane .. ':' .. member end
local function history_at(lane, member) return P .. 'history:' .. lane .. ':' .. member end
local function key_at(lane, key) return P .. 'key:' .. lane .. ':' .. key end
local function blocking_at(lane, key) return P .. 'blocking:' .. lane .. ':' .. key end
local function blocks(state) return state == 'blocked' or state == 'retry' or state == 'deferred' end

-- An era begins when numbers start, again or for the first time. The caller generates its name.
local function begin_era()
    if call('EXISTS', P .. 'seq') == 1 then return end
    call('SET', P .. 'seq', 0)
    call('SET', P .. 'era', args.fresh)
end

-- The server's history and the last number. The history changes when another server answers after a failover, when the
-- server restarts, and when numbers start again.
local function history()
    begin_era()
    local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
    local replication = string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
    local era = call('GET', P .. 'era') or ''
    return { table.concat({ run or '', replication or '', era }, ':'), call('GET', P .. 'seq') }
end
