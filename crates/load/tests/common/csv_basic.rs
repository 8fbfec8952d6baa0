//! A social network in files as the CsvBasic serializer of LDBC's generator (Datagen for SNB Interactive v1) writes
//! them.
//!
//! One file a label, edge label and attribute with several values, in `static/` and `dynamic/`, each in blocks (`_0_0`,
//! `_1_0`); fields separated by `|` and never quoted; dates as the generator's default formatter writes them. Values
//! are made up, and the same on every run.

use std::fmt::Write as _;

use super::Folder;

/// How many persons the network has.
pub const PERSONS: usize = 7;
const BLOCKS: usize = 2;
const CREATED: &str = "2010-02-14T15:32:10.447+0000";

/// Languages of a person: all but the last have some.
pub fn languages(person: usize) -> Vec<String> {
    if person + 1 == PERSONS {
        Vec::new()
    } else {
        ["si", "en", "de"][..1 + person % 3].iter().map(|l| (*l).into()).collect()
    }
}

/// Addresses of a person.
pub fn emails(person: usize) -> Vec<String> {
    (0..person % 3).map(|number| format!("p{person}.{number};a@example.org")).collect()
}

/// The benchmark's id of a person.
pub fn person_id(person: usize) -> i64 {
    933 + 1_000_000_007 * person as i64
}

/// The block of a row: what belongs to one person stands in one.
fn block_of(row: &str) -> usize {
    row.split('|').next().unwrap().parse::<usize>().unwrap() % BLOCKS
}

/// Writes the network, and names its folder.
pub fn write(name: &str) -> Folder {
    let folder = Folder::new(name, &[]);
    let write = |file: &str, header: &str, rows: &[String]| {
        for block in 0..BLOCKS {
            let mut text = format!("{header}\n");
            rows.iter().filter(|row| block_of(row) == block).for_each(|row| writeln!(text, "{row}").unwrap());
            let path = folder.file(&format!("{file}_{block}_0.csv"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    let rows = |count: usize, row: &dyn Fn(usize) -> String| (0..count).map(row).collect::<Vec<_>>();
    let each = |row: &dyn Fn(usize) -> Vec<String>| (0..PERSONS).flat_map(row).collect::<Vec<_>>();
    write(
        "static/place",
        "id|name|url|type",
        &[
            "0|India|http://dbpedia.org/resource/India|country".into(),
            "1|Asia|http://dbpedia.org/resource/Asia|continent".into(),
            "2|Agra|http://dbpedia.org/resource/Agra|city".into(),
        ],
    );
    write("static/place_isPartOf_place", "Place.id|Place.id", &["2|0".into(), "0|1".into()]);
    write(
        "static/organisation",
        "id|type|name|url",
        &[
            "0|company|Kam_Air|http://dbpedia.org/resource/Kam_Air".into(),
            "1|university|Agra_University|http://dbpedia.org/resource/Agra_University".into(),
        ],
    );
    write("static/organisation_isLocatedIn_place", "Organisation.id|Place.id", &["0|0".into(), "1|2".into()]);
    write(
        "static/tagclass",
        "id|name|url",
        &["0|Thing|http://www.w3.org/2002/07/owl#Thing".into(), "1|Person|x".into()],
    );
    write("static/tagclass_isSubclassOf_tagclass", "TagClass.id|TagClass.id", &["1|0".into()]);
    write("static/tag", "id|name|url", &["0|Hamid_Karzai|http://dbpedia.org/resource/Hamid_Karzai".into()]);
    write("static/tag_hasType_tagclass", "Tag.id|TagClass.id", &["0|1".into()]);
    write(
        "dynamic/person",
        "id|firstName|lastName|gender|birthday|creationDate|locationIP|browserUsed",
        &rows(PERSONS, &|n| {
            format!("{}|First{n}|Last \"{n}\"|male|1989-12-03|{CREATED}|119.235.7.103|Firefox", person_id(n))
        }),
    );
    let values = |of: fn(usize) -> Vec<String>| {
        each(&|n| of(n).iter().map(|value| format!("{}|{value}", person_id(n))).collect::<Vec<_>>())
    };
    write("dynamic/person_speaks_language", "Person.id|language", &values(languages));
    write("dynamic/person_email_emailaddress", "Person.id|email", &values(emails));
    write("dynamic/person_isLocatedIn_place", "Person.id|Place.id", &rows(PERSONS, &|n| format!("{}|2", person_id(n))));
    write("dynamic/person_hasInterest_tag", "Person.id|Tag.id", &rows(PERSONS, &|n| format!("{}|0", person_id(n))));
    write(
        "dynamic/person_studyAt_organisation",
        "Person.id|Organisation.id|classYear",
        &[format!("{}|1|2004", person_id(0))],
    );
    write(
        "dynamic/person_workAt_organisation",
        "Person.id|Organisation.id|workFrom",
        &[format!("{}|0|2005", person_id(1))],
    );
    write(
        "dynamic/person_knows_person",
        "Person.id|Person.id|creationDate",
        &rows(PERSONS - 1, &|n| format!("{}|{}|{CREATED}", person_id(n), person_id(n + 1))),
    );
    let content = "id|imageFile|creationDate|locationIP|browserUsed|language|content|length";
    write(
        "dynamic/post",
        content,
        &[
            format!("3||{CREATED}|119.235.7.103|Firefox|uz|About Hamid Karzai, \"born\" in|30"),
            format!("4|photo4.jpg|{CREATED}|119.235.7.103|Firefox|||0"),
        ],
    );
    write(
        "dynamic/comment",
        "id|creationDate|locationIP|browserUsed|content|length",
        &[format!("3|{CREATED}|119.235.7.103|Firefox|no way!|7"), format!("5|{CREATED}|119.235.7.103|Firefox|yes|3")],
    );
    write("dynamic/forum", "id|title|creationDate", &[format!("3|Wall of First0|{CREATED}")]);
    let person = person_id(0);
    for (file, header, row) in [
        ("post_hasCreator_person", "Post.id|Person.id", format!("3|{person}")),
        ("post_hasTag_tag", "Post.id|Tag.id", "3|0".to_owned()),
        ("post_isLocatedIn_place", "Post.id|Place.id", "3|0".to_owned()),
        ("comment_hasCreator_person", "Comment.id|Person.id", format!("3|{person}")),
        ("comment_hasTag_tag", "Comment.id|Tag.id", "3|0".to_owned()),
        ("comment_isLocatedIn_place", "Comment.id|Place.id", "3|0".to_owned()),
        ("comment_replyOf_post", "Comment.id|Post.id", "3|3".to_owned()),
        ("comment_replyOf_comment", "Comment.id|Comment.id", "5|3".to_owned()),
        ("forum_containerOf_post", "Forum.id|Post.id", "3|3".to_owned()),
        ("forum_hasModerator_person", "Forum.id|Person.id", format!("3|{person}")),
        ("forum_hasTag_tag", "Forum.id|Tag.id", "3|0".to_owned()),
        ("forum_hasMember_person", "Forum.id|Person.id|joinDate", format!("3|{person}|{CREATED}")),
        ("person_likes_post", "Person.id|Post.id|creationDate", format!("{person}|3|{CREATED}")),
        ("person_likes_comment", "Person.id|Comment.id|creationDate", format!("{person}|3|{CREATED}")),
    ] {
        write(&format!("dynamic/{file}"), header, &[row]);
    }
    folder
}
