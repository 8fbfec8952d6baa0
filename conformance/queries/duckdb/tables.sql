-- The tables that the queries of bi.sql read, made of the tables of the CSV files (answers.py).
-- Dates are milliseconds since 1970.

-- `knows` is stored once a pair. Here it has both directions.
CREATE TABLE knows AS
    SELECT source AS person, target AS friend, creationDate FROM person_knows_person
    UNION ALL
    SELECT target, source, creationDate FROM person_knows_person;

CREATE TABLE person_place AS
    SELECT p.source AS person, p.target AS city, c.name AS cityName, n.name AS country
    FROM person_isLocatedIn_place p
    JOIN place c ON c.id = p.target
    JOIN place_isPartOf_place partOf ON partOf.source = c.id
    JOIN place n ON n.id = partOf.target;

-- Posts and comments with their parents. Ids of posts and of comments are different; answers.py checks it.
CREATE TABLE written AS
    SELECT id, false AS isComment, creationDate, content, length, language, creator.target AS creator, NULL::BIGINT AS parent
    FROM post JOIN post_hasCreator_person creator ON creator.source = post.id
    UNION ALL
    SELECT id, true, creationDate, content, length, NULL, creator.target, replied.target
    FROM comment
    JOIN comment_hasCreator_person creator ON creator.source = comment.id
    JOIN (FROM comment_replyOf_post UNION ALL FROM comment_replyOf_comment) replied ON replied.source = comment.id;

-- Every message with the post at the root of its thread, that post's language, and the forum of that post.
CREATE TABLE message AS
    WITH RECURSIVE thread(id, root) AS (
        SELECT id, id FROM post
        UNION ALL
        SELECT written.id, thread.root FROM thread JOIN written ON written.parent = thread.id
    )
    SELECT written.* EXCLUDE (language), root.language AS rootLanguage, thread.root, contained.source AS forum
    FROM written
    JOIN thread ON thread.id = written.id
    JOIN post root ON root.id = thread.root
    JOIN forum_containerOf_post contained ON contained.target = thread.root;

CREATE TABLE message_tag AS
    SELECT used.source AS message, tag.id AS tag, tag.name AS tagName, class.name AS tagClass
    FROM (FROM post_hasTag_tag UNION ALL FROM comment_hasTag_tag) used
    JOIN tag ON tag.id = used.target
    JOIN tag_hasType_tagclass typed ON typed.source = tag.id
    JOIN tagclass class ON class.id = typed.target;

CREATE TABLE likes AS
    SELECT liked.source AS person, liked.target AS message, message.creator
    FROM (FROM person_likes_post UNION ALL FROM person_likes_comment) liked
    JOIN message ON message.id = liked.target;

-- Who replies to whom, a row for each reply.
CREATE TABLE reply AS
    SELECT reply.id, reply.creator AS author, parent.creator AS answered, parent.isComment AS toComment, reply.forum
    FROM message reply JOIN message parent ON parent.id = reply.parent;

-- The same for each of the two persons.
CREATE TABLE talk AS
    SELECT author AS person, answered AS other, toComment, forum FROM reply
    UNION ALL
    SELECT answered, author, toComment, forum FROM reply;

CREATE TABLE interest AS
    SELECT i.source AS person, tag.name AS tagName FROM person_hasInterest_tag i JOIN tag ON tag.id = i.target;
