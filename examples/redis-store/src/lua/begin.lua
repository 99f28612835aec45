-- The outbox in Redis. Redis runs one script at a time, from its beginning to its end: each call of this script is a
-- transaction, and nobody sees half of it.
--
-- KEYS[1] what all keys start with; ARGV[1] the verb; ARGV[2] its arguments, as JSON; bytes follow from ARGV[3] on.
--
-- The rooms of a message. Its place is a lane and a member: the number in 19 digits, the id, and the sink ('' before it is
-- routed), with colons between them. So members are in order of the number, which is the score of every set, and no message
-- is ever taken for another: after a failover numbers repeat, ids do not.
--   ready:LANE, ready-row:LANE       a sorted set of members, and a hash of their contents
--   waiting:LANE, row:LANE:MEMBER    a sorted set, and a hash a row; due:LANE sorts those that have a time by it
--   dead:LANE, row:LANE:MEMBER       the same for dead letters; blocking:LANE:KEY has those that block their key
--   key:LANE:KEY                     the waiting rows of a key, for everything about its order
--   delivered, kept:LANE:MEMBER      where delivered messages are kept
--   history:LANE:MEMBER              what was tried: three entries a time
--   seq, era                         the last number that was given, and a name for the time since numbers began
local P = KEYS[1] .. ':'
local args = cjson.decode(ARGV[2])
local call = redis.call
local clock = call('TIME')
-- Microseconds since the epoch, exact in a number of Lua for another two centuries.
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local LANES, COMMON, SPECIAL, FOLLOWERS = 80, 64, 8, 64
local UNROUTED = ''

local function int(number) return string.format('%.0f', number) end
local function seq_of(member) return tonumber(string.sub(member, 1, 19)) end
local function leg_of(member) return string.sub(member, 58) end
local function member_of(seq, id, leg) return string.format('%019.0f', seq) .. ':' .. id .. ':' .. leg end
-- The member of another leg of the same message.
local function with_leg(member, leg) return string.sub(member, 1, 57) .. leg end
local function row_at(lane, member) return P .. 'row:' .. lane .. ':' .. member end
local function history_at(lane, member) return P .. 'history:' .. lane .. ':' .. member end
local function key_at(lane, key) return P .. 'key:' .. lane .. ':' .. key end
local function blocking_at(lane, key) return P .. 'blocking:' .. lane .. ':' .. key end
local function blocks(state) return state == 'held' or state == 'retry' or state == 'down' end

-- Where numbers begin, again or for the first time, an era begins. Its name is one that the caller has made up.
local function begin_era()
    if call('EXISTS', P .. 'seq') == 1 then return end
    call('SET', P .. 'seq', 0)
    call('SET', P .. 'era', args.fresh)
end

-- Which history the server has: another one answers after a failover, the same one is another after a restart, and numbers
-- may begin anew. And the last number.
local function history()
    begin_era()
    local run = string.match(call('INFO', 'server'), 'run_id:(%w+)')
    local replication = string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
    local era = call('GET', P .. 'era') or ''
    return { table.concat({ run or '', replication or '', era }, ':'), call('GET', P .. 'seq') }
end
