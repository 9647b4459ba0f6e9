-- The log in one file. PRAGMA application_id and user_version say that it is ours and how old.

CREATE TABLE topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
);

-- AUTOINCREMENT: the id of a deleted partition never comes back, so nothing that still names
-- it (an open subscription, a commit on its way) can hit another.
-- "first" is the oldest offset that is kept, "next" the one that the next record gets; "stamp"
-- is the newest record's time, which the next record may not undercut.
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id INTEGER NOT NULL REFERENCES topics ON DELETE CASCADE,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 0,
    stamp INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic_id, number)
);

-- What one batch brought to one partition, or a part of it. id is (partitions.id << 40) | the
-- offset of the first of "count" records: one integer key, appended at the end of its
-- partition. Without gaps up to "next"; of the oldest one, what lies before "first" is deleted
-- already. stamp is microseconds since the epoch. lengths has 4 bytes, the lowest first, for
-- the length of each key, value and headers, -1 for none; body has all of them end to end.
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    lengths BLOB NOT NULL,
    body BLOB NOT NULL
);

-- generation moves with every change of members, claims or topics, so that members see with
-- one cheap look whether there is something to do.
CREATE TABLE groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    private INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0
);

-- A lease counts while now < expires <= now + session, on the clock that runs since boot:
-- steps of the wall clock do not matter, and leases from before a reboot do not count.
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

-- Topics that a group began to wait for before they were there: it gets all of them, even
-- if it began at the latest record and none of its members lives when they appear.
CREATE TABLE awaited (
    group_id INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    topic TEXT NOT NULL,
    PRIMARY KEY (group_id, topic)
) WITHOUT ROWID;
