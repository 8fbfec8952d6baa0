//! Turns the network into batches, with LDBC's labels, keys and types.
//!
//! Vertices are numbered in the order in which they are handed over: continents, countries, cities, companies,
//! universities, tag classes, tags, persons, and then chunk by chunk forums, posts and comments. [`Emitter::new`]
//! counts on this order for the numbers of the first vertices. So `world` is called first, then `people`, and then the
//! others.

use smol_str::{SmolStr, format_smolstr};

use mangrove::{Result, Value};

use super::activity::{Activity, Like, Message, Parent};
use super::friends::Friends;
use super::people::Person;
use super::words;
use super::world::World;
use crate::sink::{
    GenerateProgress, GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink,
};

const PLACE: &str = "Place";
const ORGANISATION: &str = "Organisation";
const TAG_CLASS: &str = "TagClass";
const TAG: &str = "Tag";
const PERSON: &str = "Person";
const FORUM: &str = "Forum";
const POST: &str = "Post";
const COMMENT: &str = "Comment";

/// Hands the network to a sink. The fields from `countries` to `persons` have the numbers of the first vertices of
/// these kinds.
pub(super) struct Emitter<'a> {
    sink: &'a mut dyn GraphSink,
    world: &'a World,
    people: &'a [Person],
    /// The number of the next vertex.
    next: u64,
    countries: u64,
    cities: u64,
    companies: u64,
    universities: u64,
    classes: u64,
    tags: u64,
    persons: u64,
}

/// Edges, as the vertex numbers of source and target.
type EdgeEnds = Vec<(u64, u64)>;

impl<'a> Emitter<'a> {
    pub(super) fn new(sink: &'a mut dyn GraphSink, world: &'a World, people: &'a [Person]) -> Self {
        let countries = words::CONTINENTS.len() as u64;
        let cities = countries + world.countries.len() as u64;
        let companies = cities + world.cities.len() as u64;
        let universities = companies + world.companies.len() as u64;
        let classes = universities + world.universities.len() as u64;
        let tags = classes + world.classes.len() as u64;
        let persons = tags + world.tags.len() as u64;
        Emitter { sink, world, people, next: 0, countries, cities, companies, universities, classes, tags, persons }
    }

    pub(super) fn progress(&mut self, progress: GenerateProgress) {
        self.sink.progress(progress);
    }

    /// Hands over places, organisations, classes and tags, with the edges between them.
    pub(super) fn world(&mut self) -> Result<()> {
        let world = self.world;
        let continents = words::CONTINENTS.iter().map(|name| SmolStr::new_static(name)).collect();
        self.named(PLACE, "Place::Continent", 0, continents)?;
        let countries = world.countries.iter().map(|country| SmolStr::new_static(country.name)).collect();
        self.named(PLACE, "Place::Country", self.countries, countries)?;
        self.named(PLACE, "Place::City", self.cities, world.cities.iter().map(|city| city.name.clone()).collect())?;
        let names =
            |organisations: &[super::world::Organisation]| organisations.iter().map(|o| o.name.clone()).collect();
        self.named(ORGANISATION, "Organisation::Company", 0, names(&world.companies))?;
        let first_university = self.universities - self.companies;
        self.named(ORGANISATION, "Organisation::University", first_university, names(&world.universities))?;
        let classes = world.classes.iter().map(|class| SmolStr::new_static(class.name)).collect();
        self.named(TAG_CLASS, TAG_CLASS, 0, classes)?;
        self.named(TAG, TAG, 0, world.tags.iter().map(|tag| tag.name.clone()).collect())?;

        let (countries, cities, classes) = (self.countries, self.cities, self.classes);
        let of_countries = world.countries.iter().zip(countries..).map(|(c, number)| (number, c.continent as u64));
        let of_cities = world.cities.iter().zip(cities..).map(|(c, number)| (number, countries + c.country as u64));
        self.plain_edges("isPartOf", PLACE, PLACE, of_countries.chain(of_cities).collect())?;
        let companies = world.companies.iter().zip(self.companies..);
        let companies = companies.map(|(o, number)| (number, countries + o.place as u64));
        let universities = world.universities.iter().zip(self.universities..);
        let universities = universities.map(|(o, number)| (number, cities + o.place as u64));
        self.plain_edges("isLocatedIn", ORGANISATION, PLACE, companies.chain(universities).collect())?;
        let parents = world.classes.iter().zip(classes..);
        let parents = parents.filter_map(|(c, number)| Some((number, classes + c.parent? as u64)));
        self.plain_edges("isSubclassOf", TAG_CLASS, TAG_CLASS, parents.collect())?;
        let types = world.tags.iter().zip(self.tags..).map(|(tag, number)| (number, classes + tag.class as u64));
        self.plain_edges("hasType", TAG, TAG_CLASS, types.collect())
    }

    /// Hands over persons, with their edges to places, organisations and tags.
    pub(super) fn people(&mut self, chunk: usize) -> Result<()> {
        for people in self.people.chunks(chunk) {
            let numbers: Vec<u64> = (self.next..).take(people.len()).collect();
            let numbered = || numbers.iter().copied().zip(people);
            let ids = people.iter().map(|person| person.id).collect();
            self.vertices(PERSON, PERSON, ids, person_columns(people))?;
            let (cities, tags) = (self.cities, self.tags);
            let homes = numbered().map(|(number, person)| (number, cities + person.city as u64)).collect();
            self.plain_edges("isLocatedIn", PERSON, PLACE, homes)?;
            let interests =
                numbered().flat_map(|(n, person)| person.interests.iter().map(move |tag| (n, tags + u64::from(*tag))));
            self.plain_edges("hasInterest", PERSON, TAG, interests.collect())?;
            let universities = self.universities;
            let study =
                numbered().filter_map(|(n, p)| p.study.map(|(at, year)| ((n, universities + u64::from(at)), year)));
            let (ends, years) = study.unzip();
            self.edges(
                "studyAt",
                PERSON,
                ORGANISATION,
                ends,
                vec![GeneratedColumn::new("classYear", GeneratedValues::I32(years))],
            )?;
            let companies = self.companies;
            let work = numbered()
                .flat_map(|(n, p)| p.work.iter().map(move |(at, year)| ((n, companies + u64::from(*at)), *year)));
            let (ends, years) = work.unzip();
            self.edges(
                "workAt",
                PERSON,
                ORGANISATION,
                ends,
                vec![GeneratedColumn::new("workFrom", GeneratedValues::I32(years))],
            )?;
            let done = numbers.last().map_or(0, |last| last + 1 - self.persons);
            self.progress(GenerateProgress { stage: "persons", done, total: self.people.len() as u64 });
        }
        Ok(())
    }

    /// Hands over friendships, each as one edge.
    pub(super) fn knows(&mut self, friends: &Friends, chunk: usize) -> Result<()> {
        for first in (0..self.people.len()).step_by(chunk) {
            let pairs = friends.pairs(first..self.people.len().min(first + chunk));
            let (ends, dates) = pairs.map(|(one, other, date)| ((self.person(one), self.person(other)), date)).unzip();
            self.edges("knows", PERSON, PERSON, ends, vec![dates_column("creationDate", dates)])?;
        }
        Ok(())
    }

    /// Hands over the forums, messages and likes of a chunk, with their edges.
    pub(super) fn activity(&mut self, made: Activity) -> Result<()> {
        let forums = self.next;
        let columns = vec![
            GeneratedColumn::new(
                "title",
                GeneratedValues::Text(made.forums.iter().map(|forum| forum.title.clone()).collect()),
            ),
            dates_column("creationDate", made.forums.iter().map(|forum| forum.created).collect()),
        ];
        self.vertices(FORUM, FORUM, made.forums.iter().map(|forum| forum.id).collect(), columns)?;
        let posts = self.next;
        let columns = self.post_columns(&made);
        self.vertices(POST, POST, made.posts.iter().map(|post| post.id).collect(), columns)?;
        let comments = self.next;
        let columns = self.message_columns(&made.comments);
        self.vertices(COMMENT, COMMENT, made.comments.iter().map(|comment| comment.id).collect(), columns)?;

        self.forum_edges(&made, forums)?;
        let containers = made.containers.iter().zip(posts..).map(|(forum, post)| (forums + u64::from(*forum), post));
        self.plain_edges("containerOf", FORUM, POST, containers.collect())?;
        self.message_edges(POST, &made.posts, posts)?;
        self.message_edges(COMMENT, &made.comments, comments)?;
        let parents = || made.parents.iter().zip(comments..);
        let to_posts = parents().filter_map(|(parent, comment)| match parent {
            Parent::Post(post) => Some((comment, posts + u64::from(*post))),
            Parent::Comment(_) => None,
        });
        self.plain_edges("replyOf", COMMENT, POST, to_posts.collect())?;
        let to_comments = parents().filter_map(|(parent, comment)| match parent {
            Parent::Comment(other) => Some((comment, comments + u64::from(*other))),
            Parent::Post(_) => None,
        });
        self.plain_edges("replyOf", COMMENT, COMMENT, to_comments.collect())?;
        self.likes(POST, &made.post_likes, posts)?;
        self.likes(COMMENT, &made.comment_likes, comments)
    }

    /// Hands over the edges of the forums of a chunk. `forums` is the number of the first.
    fn forum_edges(&mut self, made: &Activity, forums: u64) -> Result<()> {
        let moderators = made.forums.iter().zip(forums..).map(|(forum, n)| (n, self.person(forum.moderator)));
        self.plain_edges("hasModerator", FORUM, PERSON, moderators.collect())?;
        let members = made.members.iter();
        let members = members.map(|m| ((forums + u64::from(m.forum), self.person(m.person)), m.joined));
        let (ends, dates) = members.unzip();
        self.edges("hasMember", FORUM, PERSON, ends, vec![dates_column("joinDate", dates)])?;
        let tags = self.tags;
        let about = made.forums.iter().zip(forums..);
        let about = about.flat_map(|(forum, n)| forum.tags.iter().map(move |tag| (n, tags + u64::from(*tag))));
        self.plain_edges("hasTag", FORUM, TAG, about.collect())
    }

    /// Hands over the edges that posts and comments share. `first` is the number of the first message.
    fn message_edges(&mut self, table: &'static str, messages: &[Message], first: u64) -> Result<()> {
        let numbered = || messages.iter().zip(first..);
        let authors = numbered().map(|(message, n)| (n, self.person(message.author))).collect();
        self.plain_edges("hasCreator", table, PERSON, authors)?;
        let countries = numbered().map(|(message, n)| (n, self.countries + message.country as u64)).collect();
        self.plain_edges("isLocatedIn", table, PLACE, countries)?;
        let first_tag = self.tags;
        let tags = numbered().flat_map(|(m, n)| m.tags.iter().map(move |tag| (n, first_tag + u64::from(*tag))));
        self.plain_edges("hasTag", table, TAG, tags.collect())
    }

    /// Hands over likes of posts or of comments. `first` is the number of the first message.
    fn likes(&mut self, table: &'static str, likes: &[Like], first: u64) -> Result<()> {
        let end = |like: &Like| ((self.person(like.person), first + u64::from(like.message)), like.date);
        let (ends, dates) = likes.iter().map(end).unzip();
        self.edges("likes", PERSON, table, ends, vec![dates_column("creationDate", dates)])
    }

    /// The vertex number of a person.
    fn person(&self, position: u32) -> u64 {
        self.persons + u64::from(position)
    }

    /// Hands over vertices that have a name and a URL. Their values of `id` count from `first_id`.
    fn named(&mut self, table: &'static str, label: &'static str, first_id: u64, names: Vec<SmolStr>) -> Result<()> {
        let ids = (first_id as i64..).take(names.len()).collect();
        let url = |name: &SmolStr| format_smolstr!("http://example.org/resource/{name}");
        let urls = names.iter().map(url).collect();
        self.vertices(
            table,
            label,
            ids,
            vec![
                GeneratedColumn::new("name", GeneratedValues::Text(names)),
                GeneratedColumn::new("url", GeneratedValues::Text(urls)),
            ],
        )
    }

    /// Hands over vertices, which get the next numbers.
    fn vertices(
        &mut self,
        table: &'static str,
        label: &'static str,
        ids: Vec<i64>,
        columns: Vec<GeneratedColumn>,
    ) -> Result<()> {
        let (table, label) = (SmolStr::new_static(table), SmolStr::new_static(label));
        let (first, len) = (self.next, ids.len());
        self.next += len as u64;
        self.sink.vertices(GeneratedVertices { table, label, first, len, ids: GeneratedIds::Local(ids), columns })
    }

    /// Hands over edges without properties.
    fn plain_edges(
        &mut self,
        label: &'static str,
        source: &'static str,
        target: &'static str,
        ends: EdgeEnds,
    ) -> Result<()> {
        self.edges(label, source, target, ends, Vec::new())
    }

    fn edges(
        &mut self,
        label: &'static str,
        source: &'static str,
        target: &'static str,
        ends: EdgeEnds,
        columns: Vec<GeneratedColumn>,
    ) -> Result<()> {
        let tables = Some((SmolStr::new_static(source), SmolStr::new_static(target)));
        self.sink.edges(GeneratedEdges { label: SmolStr::new_static(label), tables, ends, columns })
    }

    /// The columns that posts and comments share.
    fn message_columns(&self, messages: &[Message]) -> Vec<GeneratedColumn> {
        let author = |message: &Message| &self.people[message.author as usize];
        let length = |message: &Message| message.content.as_ref().map_or(0, |text| text.chars().count() as i32);
        vec![
            dates_column("creationDate", messages.iter().map(|message| message.created).collect()),
            GeneratedColumn::new(
                "locationIP",
                GeneratedValues::Text(messages.iter().map(|m| author(m).address_in(m.country)).collect()),
            ),
            GeneratedColumn::new(
                "browserUsed",
                GeneratedValues::Text(messages.iter().map(|m| author(m).browser_name()).collect()),
            ),
            GeneratedColumn::new(
                "content",
                GeneratedValues::OptionalText(messages.iter().map(|m| m.content.clone()).collect()),
            ),
            GeneratedColumn::new("length", GeneratedValues::I32(messages.iter().map(length).collect())),
        ]
    }

    /// The columns of posts. A post without content is a photo.
    fn post_columns(&self, made: &Activity) -> Vec<GeneratedColumn> {
        let image = |post: &Message| post.content.is_none().then(|| format_smolstr!("photo{}.jpg", post.id));
        let languages = made.languages.iter().map(|language| language.map(SmolStr::new_static));
        let mut columns = self.message_columns(&made.posts);
        columns.push(GeneratedColumn::new(
            "imageFile",
            GeneratedValues::OptionalText(made.posts.iter().map(image).collect()),
        ));
        columns.push(GeneratedColumn::new("language", GeneratedValues::OptionalText(languages.collect())));
        columns
    }
}

fn person_columns(people: &[Person]) -> Vec<GeneratedColumn> {
    let text = |key: &'static str, of: &dyn Fn(&Person) -> SmolStr| {
        GeneratedColumn::new(key, GeneratedValues::Text(people.iter().map(of).collect()))
    };
    let several = |key: &'static str, of: &dyn Fn(&Person) -> Vec<Value>| {
        GeneratedColumn::new(
            key,
            GeneratedValues::Several((0..).zip(people).map(|(row, person)| (row, of(person))).collect()),
        )
    };
    vec![
        text("firstName", &|person| SmolStr::new_static(person.first_name)),
        text("lastName", &|person| SmolStr::new_static(person.last_name)),
        text("gender", &|person| SmolStr::new_static(if person.female { "female" } else { "male" })),
        dates_column("birthday", people.iter().map(|person| person.birthday).collect()),
        dates_column("creationDate", people.iter().map(|person| person.created).collect()),
        text("locationIP", &|person| person.address_in(person.country)),
        text("browserUsed", &|person| person.browser_name()),
        several("speaks", &|person| person.languages.iter().map(|language| Value::string(*language)).collect()),
        several("email", &|person| (0..person.emails).map(|n| Value::String(person.email(n))).collect()),
    ]
}

/// A column of dates, in milliseconds since 1970 as in the benchmark's parameters.
fn dates_column(key: &'static str, dates: Vec<i64>) -> GeneratedColumn {
    GeneratedColumn::new(key, GeneratedValues::I64(dates))
}
