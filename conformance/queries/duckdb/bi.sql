-- LDBC SNB BI in SQL, by the questions of the specification. Columns have the names of the rows' fields in
-- sets/ldbc-bi.toml. BI15, BI19 and BI20 give weighted edges, in which answers.py looks for the shortest paths.

-- BI1
SELECT year(epoch_ms(creationDate)) AS year, isComment,
    CASE WHEN length < 40 THEN 0 WHEN length < 80 THEN 1 WHEN length < 160 THEN 2 ELSE 3 END AS lengthCategory,
    count(*) AS messageCount, avg(length) AS averageMessageLength, sum(length) AS sumMessageLength,
    count(*) / (SELECT count(*) FROM message WHERE creationDate < $datetime) AS percentageOfMessages
FROM message
WHERE creationDate < $datetime AND content IS NOT NULL
GROUP BY ALL
ORDER BY year DESC, isComment, lengthCategory;

-- BI2
WITH used AS (
    SELECT tagName,
        count(*) FILTER (creationDate >= $date AND creationDate < $firstEnd) AS first,
        count(*) FILTER (creationDate >= $firstEnd AND creationDate < $secondEnd) AS second
    FROM message_tag JOIN message ON message.id = message_tag.message
    GROUP BY tagName
)
SELECT tag.name AS tagName, coalesce(first, 0) AS countWindow1, coalesce(second, 0) AS countWindow2,
    abs(countWindow1 - countWindow2) AS diff
FROM tag
JOIN tag_hasType_tagclass typed ON typed.source = tag.id
JOIN tagclass class ON class.id = typed.target AND class.name = $tagClass
LEFT JOIN used ON used.tagName = tag.name
ORDER BY diff DESC, tag.name
LIMIT 100;

-- BI3
SELECT forum.id AS forumId, forum.title AS forumTitle, forum.creationDate AS forumCreationDate,
    moderated.target AS personId, count(DISTINCT message.id) AS messageCount
FROM forum
JOIN forum_hasModerator_person moderated ON moderated.source = forum.id
JOIN person_place ON person_place.person = moderated.target AND person_place.country = $country
JOIN message ON message.forum = forum.id
JOIN message_tag ON message_tag.message = message.id AND message_tag.tagClass = $tagClass
GROUP BY ALL
ORDER BY messageCount DESC, forumId
LIMIT 20;

-- BI4
WITH popular AS (
    SELECT forum, max(members) AS popularity
    FROM (
        SELECT member.source AS forum, place.country, count(*) AS members
        FROM forum_hasMember_person member
        JOIN person_place place ON place.person = member.target
        JOIN forum ON forum.id = member.source AND forum.creationDate > $date
        GROUP BY ALL
    )
    GROUP BY forum
    ORDER BY popularity DESC, forum
    LIMIT 100
), posts AS (
    SELECT creator, count(*) AS messages FROM message WHERE forum IN (SELECT forum FROM popular) GROUP BY creator
)
SELECT person.id AS personId, person.firstName AS personFirstName, person.lastName AS personLastName,
    person.creationDate AS personCreationDate, coalesce(messages, 0) AS messageCount
FROM person
LEFT JOIN posts ON posts.creator = person.id
WHERE person.id IN (SELECT target FROM forum_hasMember_person WHERE source IN (SELECT forum FROM popular))
ORDER BY messageCount DESC, personId
LIMIT 100;

-- BI5
WITH tagged AS (
    SELECT message.creator,
        (SELECT count(*) FROM written WHERE written.parent = message.id) AS replies,
        (SELECT count(*) FROM likes WHERE likes.message = message.id) AS likes
    FROM message JOIN message_tag ON message_tag.message = message.id AND message_tag.tagName = $tag
)
SELECT creator AS personId, sum(replies) AS replyCount, sum(likes) AS likeCount, count(*) AS messageCount,
    messageCount + 2 * replyCount + 10 * likeCount AS score
FROM tagged
GROUP BY creator
ORDER BY score DESC, personId
LIMIT 100;

-- BI6
WITH popularity AS (SELECT creator, count(*) AS score FROM likes GROUP BY creator),
authors AS (
    SELECT DISTINCT message.creator AS author, likes.person AS fan
    FROM message
    JOIN message_tag ON message_tag.message = message.id AND message_tag.tagName = $tag
    LEFT JOIN likes ON likes.message = message.id
)
SELECT author AS personId, coalesce(sum(score), 0) AS authorityScore
FROM authors LEFT JOIN popularity ON popularity.creator = authors.fan
GROUP BY author
ORDER BY authorityScore DESC, personId
LIMIT 100;

-- BI7
SELECT related.tagName AS relatedTagName, count(DISTINCT reply.id) AS count
FROM message_tag
JOIN written reply ON reply.parent = message_tag.message
JOIN message_tag related ON related.message = reply.id
WHERE message_tag.tagName = $tag
    AND reply.id NOT IN (SELECT message FROM message_tag WHERE tagName = $tag)
GROUP BY related.tagName
ORDER BY count DESC, relatedTagName
LIMIT 100;

-- BI8
WITH points AS (
    SELECT person, 100 AS points FROM interest WHERE tagName = $tag
    UNION ALL
    SELECT message.creator, 1
    FROM message JOIN message_tag ON message_tag.message = message.id AND message_tag.tagName = $tag
    WHERE message.creationDate > $startDate AND message.creationDate < $endDate
), scored AS (SELECT person, sum(points) AS score FROM points GROUP BY person)
SELECT scored.person AS personId, scored.score, coalesce(sum(friend.score), 0) AS friendsScore
FROM scored
LEFT JOIN knows ON knows.person = scored.person
LEFT JOIN scored friend ON friend.person = knows.friend
GROUP BY scored.person, scored.score
ORDER BY scored.score + friendsScore DESC, personId
LIMIT 100;

-- BI9
SELECT person.id AS personId, person.firstName AS personFirstName, person.lastName AS personLastName,
    count(DISTINCT post.id) AS threadCount, count(*) AS messageCount
FROM message post
JOIN person ON person.id = post.creator
JOIN message inThread ON inThread.root = post.id
WHERE NOT post.isComment AND post.creationDate BETWEEN $startDate AND $endDate
    AND inThread.creationDate BETWEEN $startDate AND $endDate
GROUP BY ALL
ORDER BY messageCount DESC, personId
LIMIT 100;

-- BI10
WITH RECURSIVE reached(person, distance) AS (
    SELECT $personId::BIGINT, 0
    UNION
    SELECT knows.friend, distance + 1
    FROM reached JOIN knows ON knows.person = reached.person
    WHERE distance < $maxPathDistance
), nearest AS (SELECT person, min(distance) AS distance FROM reached GROUP BY person)
SELECT message.creator AS personId, tag.tagName, count(DISTINCT message.id) AS messageCount
FROM nearest
JOIN person_place ON person_place.person = nearest.person AND person_place.country = $country
JOIN message ON message.creator = nearest.person
JOIN message_tag tag ON tag.message = message.id
WHERE distance BETWEEN $minPathDistance AND $maxPathDistance
    AND message.id IN (SELECT message FROM message_tag WHERE tagClass = $tagClass)
GROUP BY ALL
ORDER BY messageCount DESC, tagName, personId
LIMIT 100;

-- BI11
WITH locals AS (
    SELECT knows.person, knows.friend
    FROM knows
    JOIN person_place a ON a.person = knows.person AND a.country = $country
    JOIN person_place b ON b.person = knows.friend AND b.country = $country
    WHERE creationDate BETWEEN $startDate AND $endDate
)
SELECT count(*) AS count
FROM locals ab
JOIN locals bc ON bc.person = ab.friend
JOIN locals ca ON ca.person = bc.friend AND ca.friend = ab.person
WHERE ab.person < ab.friend AND bc.person < bc.friend;

-- BI12
WITH counted AS (
    SELECT person.id, count(message.id) AS messageCount
    FROM person
    LEFT JOIN message ON message.creator = person.id AND content IS NOT NULL AND length < $lengthThreshold
        AND message.creationDate > $startDate AND list_contains($languages, rootLanguage)
    GROUP BY person.id
)
SELECT messageCount, count(*) AS personCount
FROM counted
GROUP BY messageCount
ORDER BY personCount DESC, messageCount DESC;

-- BI13
WITH zombies AS (
    SELECT person.id, count(message.id) AS messages,
        $endMonth - (12 * year(epoch_ms(person.creationDate)) + month(epoch_ms(person.creationDate))) + 1 AS months
    FROM person
    JOIN person_place ON person_place.person = person.id AND person_place.country = $country
    LEFT JOIN message ON message.creator = person.id AND message.creationDate < $endDate
    WHERE person.creationDate < $endDate
    GROUP BY person.id, person.creationDate
    HAVING messages < months
)
SELECT zombies.id AS zombieId,
    count(liker.id) FILTER (liker.id IN (SELECT id FROM zombies)) AS zombieLikeCount,
    count(liker.id) FILTER (liker.creationDate < $endDate) AS totalLikeCount,
    CASE totalLikeCount WHEN 0 THEN 0.0::DOUBLE ELSE zombieLikeCount / totalLikeCount END AS zombieScore
FROM zombies
LEFT JOIN likes ON likes.creator = zombies.id
LEFT JOIN person liker ON liker.id = likes.person
GROUP BY zombies.id
ORDER BY zombieScore DESC, zombieId
LIMIT 100;

-- BI14
WITH pairs AS (
    SELECT a.person AS person1Id, b.person AS person2Id, a.cityName AS city1Name,
        CASE WHEN EXISTS (FROM reply WHERE author = a.person AND answered = b.person) THEN 4 ELSE 0 END
        + CASE WHEN EXISTS (FROM reply WHERE author = b.person AND answered = a.person) THEN 1 ELSE 0 END
        + CASE WHEN EXISTS (FROM likes WHERE likes.person = a.person AND likes.creator = b.person) THEN 10 ELSE 0 END
        + CASE WHEN EXISTS (FROM likes WHERE likes.person = b.person AND likes.creator = a.person) THEN 1 ELSE 0 END
        AS score
    FROM knows
    JOIN person_place a ON a.person = knows.person AND a.country = $country1
    JOIN person_place b ON b.person = knows.friend AND b.country = $country2
)
SELECT person1Id, person2Id, city1Name, score
FROM pairs
QUALIFY row_number() OVER (PARTITION BY city1Name ORDER BY score DESC, person1Id, person2Id) = 1
ORDER BY score DESC, person1Id, person2Id
LIMIT 100;

-- BI15
SELECT knows.person AS source, knows.friend AS target,
    1 / (1 + coalesce(sum(CASE toComment WHEN true THEN 0.5::DOUBLE WHEN false THEN 1 END), 0)) AS weight
FROM knows
LEFT JOIN talk ON talk.person = knows.person AND talk.other = knows.friend
    AND talk.forum IN (SELECT id FROM forum WHERE creationDate BETWEEN $startDate AND $endDate)
GROUP BY ALL;

-- BI16
WITH tagged AS (
    SELECT message.id, message.creator, tagName,
        tagName = $tagA AND creationDate >= $dateA AND creationDate < $endA AS isA,
        tagName = $tagB AND creationDate >= $dateB AND creationDate < $endB AS isB
    FROM message JOIN message_tag ON message_tag.message = message.id
    WHERE tagName IN ($tagA, $tagB)
), ofA AS (SELECT creator, count(*) AS messages FROM tagged WHERE isA GROUP BY creator),
ofB AS (SELECT creator, count(*) AS messages FROM tagged WHERE isB GROUP BY creator)
SELECT ofA.creator AS personId, ofA.messages AS messageCountA, ofB.messages AS messageCountB
FROM ofA JOIN ofB ON ofB.creator = ofA.creator
WHERE (SELECT count(*) FROM knows JOIN ofA f ON f.creator = knows.friend WHERE knows.person = ofA.creator) <= $maxKnowsLimit
    AND (SELECT count(*) FROM knows JOIN ofB f ON f.creator = knows.friend WHERE knows.person = ofA.creator) <= $maxKnowsLimit
ORDER BY messageCountA + messageCountB DESC, personId
LIMIT 20;

-- BI17
WITH tagged AS (
    SELECT message.* FROM message JOIN message_tag ON message_tag.message = message.id WHERE tagName = $tag
), answered AS (
    SELECT DISTINCT second.id, second.forum, second.creationDate, second.creator, answer.creator AS answering
    FROM tagged second JOIN tagged answer ON answer.parent = second.id AND answer.creator <> second.creator
)
SELECT first.creator AS personId, count(DISTINCT answered.id) AS messageCount
FROM answered
JOIN forum_hasMember_person a ON a.target = answered.creator
JOIN forum_hasMember_person b ON b.target = answered.answering AND b.source = a.source
JOIN tagged first ON first.forum = a.source AND first.forum <> answered.forum
    AND answered.creationDate > first.creationDate + $delta
ANTI JOIN forum_hasMember_person own ON own.source = answered.forum AND own.target = first.creator
GROUP BY first.creator
ORDER BY messageCount DESC, personId
LIMIT 10;

-- BI18
WITH interested AS (SELECT person FROM interest WHERE tagName = $tag)
SELECT a.person AS person1Id, b.friend AS person2Id, count(*) AS mutualFriendCount
FROM knows a
JOIN knows b ON b.person = a.friend AND b.friend <> a.person
WHERE a.person IN (FROM interested) AND b.friend IN (FROM interested)
    AND NOT EXISTS (FROM knows WHERE knows.person = a.person AND knows.friend = b.friend)
GROUP BY ALL
ORDER BY mutualFriendCount DESC, person1Id, person2Id
LIMIT 20;

-- BI19
SELECT knows.person AS source, knows.friend AS target, greatest(floor(40 - sqrt(count(*)) + 0.5), 1) AS weight
FROM knows
JOIN talk ON talk.person = knows.person AND talk.other = knows.friend
GROUP BY ALL;

-- BI20
SELECT knows.person AS source, knows.friend AS target, min(abs(a.classYear - b.classYear)) + 1 AS weight
FROM knows
JOIN person_studyAt_organisation a ON a.source = knows.person
JOIN person_studyAt_organisation b ON b.source = knows.friend AND b.target = a.target
GROUP BY ALL;
