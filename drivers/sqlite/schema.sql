-- The log in one file. PRAGMA application_id identifies it, PRAGMA user_version is its schema version.

CREATE TABLE topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
);

-- AUTOINCREMENT: the id of a deleted partition is never used again, so that an open subscription
-- or a late commit cannot reach another partition.
-- "first" is the oldest offset that is kept, "next" the offset of the next record. "stamp" is the
-- time of the newest record; the next record must not have an earlier one.
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id INTEGER NOT NULL REFERENCES topics ON DELETE CASCADE,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 0,
    stamp INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic_id, number)
);

-- The records that one batch added to one partition, or a part of them. id is (partitions.id << 40) |
-- the offset of the first of "count" records: one integer key, always appended at the end of the
-- partition. There are no gaps up to "next"; in the oldest block, the records before "first" are
-- deleted. stamp is in microseconds since the epoch. lengths has 4 bytes, little-endian, for the
-- length of each key, value and headers, -1 for none; body has all of them end to end.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    lengths BLOB NOT NULL,
    body BLOB NOT NULL
);

-- generation grows with every change of members, claims or topics, so that members need one
-- cheap query to know whether to rebalance.
CREATE TABLE groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    private INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0
);

-- A lease is valid while now < expires <= now + session, on the clock that counts from boot:
-- changes of the wall clock do not matter, and leases from before a reboot are not valid.
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    group_id INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    topics TEXT NOT NULL,
    session REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX members_of_group ON members (group_id);

CREATE TABLE claims (
    group_id INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    partition_id INTEGER NOT NULL REFERENCES partitions ON DELETE CASCADE,
    member_id TEXT NOT NULL REFERENCES members ON DELETE CASCADE,
    PRIMARY KEY (group_id, partition_id)
) WITHOUT ROWID;

CREATE INDEX claims_of_member ON claims (member_id);
CREATE INDEX claims_of_partition ON claims (partition_id);

CREATE TABLE positions (
    group_id INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    partition_id INTEGER NOT NULL REFERENCES partitions ON DELETE CASCADE,
    offset INTEGER NOT NULL,
    PRIMARY KEY (group_id, partition_id)
) WITHOUT ROWID;

CREATE INDEX positions_of_partition ON positions (partition_id);

-- Topics that a group subscribed to before they were created. The group gets all their records,
-- even if it starts at the latest record and has no live member when a topic is created.
CREATE TABLE awaited (
    group_id INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    topic TEXT NOT NULL,
    PRIMARY KEY (group_id, topic)
) WITHOUT ROWID;
