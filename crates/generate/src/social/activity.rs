//! Makes activity: forums, members, posts, comments and likes, for a chunk of moderators at a time.
//!
//! Every person has a wall, on which the person posts and friends comment, and albums of photos whose members are
//! friends. Some persons begin groups of friends and others around a tag. Posts are about interests of their author;
//! comments keep to the tags of their parent. After an event about a tag, many persons write about the tag. A person
//! posts, comments and likes only after joining the forum, and replies and likes come after the message.

use smol_str::{SmolStr, format_smolstr};

use super::dates::{DAY, END, HOUR, SECOND, dated_id};
use super::friends::Friends;
use super::people::Person;
use super::words;
use super::world::World;
use crate::random::{RandomStream, domain};

/// Moderators of one chunk.
pub(super) const CHUNK: usize = 64;

/// The number of id bits that distinguish the forums, or the messages, of one chunk.
const LOCAL_BITS: u32 = 20;

const WALL_POSTS_A_FRIEND: f64 = 0.52;
const ALBUMS_A_YEAR: f64 = 5.6;
const PHOTOS_AN_ALBUM: f64 = 9.5;
/// The probability that a friend is a member of an album.
const ALBUM_SHARE: f64 = 0.38;
const GROUP_CHANCE: f64 = 0.09;
const GROUP_POSTS_A_MEMBER: f64 = 0.55;
const COMMENTS_A_POST: f64 = 8.6;
const PHOTO_LIKES: f64 = 0.28;
const POST_LIKES: f64 = 1.5;
const COMMENT_LIKES: f64 = 0.48;
/// The probability that a text post is about an event, if there is one about its author's interests.
const EVENT_CHANCE: f64 = 0.35;
/// The probability that a person writes from another country.
const TRAVEL_CHANCE: f64 = 0.06;
/// The probability that a comment is a text instead of a short answer.
const LONG_CHANCE: f64 = 0.35;

pub(super) struct Forum {
    pub(super) id: i64,
    pub(super) title: SmolStr,
    pub(super) created: i64,
    pub(super) moderator: u32,
    pub(super) tags: Vec<u32>,
}

/// The message that a comment replies to, by position in the chunk.
#[derive(Clone, Copy)]
pub(super) enum Parent {
    Post(u32),
    Comment(u32),
}

/// The common properties of posts and comments.
pub(super) struct Message {
    pub(super) id: i64,
    pub(super) created: i64,
    pub(super) author: u32,
    pub(super) country: usize,
    /// `None`: a photo.
    pub(super) content: Option<SmolStr>,
    pub(super) tags: Vec<u32>,
}

/// A member of a forum of the chunk, with the date of joining.
pub(super) struct Member {
    pub(super) forum: u32,
    pub(super) person: u32,
    pub(super) joined: i64,
}

/// A like of a message, given by its position in the chunk.
pub(super) struct Like {
    pub(super) person: u32,
    pub(super) message: u32,
    pub(super) date: i64,
}

/// The activity of one chunk. Positions count from 0 in each chunk.
#[derive(Default)]
pub(super) struct Activity {
    pub(super) forums: Vec<Forum>,
    pub(super) members: Vec<Member>,
    pub(super) posts: Vec<Message>,
    /// By post.
    pub(super) containers: Vec<u32>,
    /// By post.
    pub(super) languages: Vec<Option<&'static str>>,
    pub(super) comments: Vec<Message>,
    /// By comment.
    pub(super) parents: Vec<Parent>,
    pub(super) post_likes: Vec<Like>,
    pub(super) comment_likes: Vec<Like>,
}

/// The inputs of the activity.
pub(super) struct ActivityContext<'a> {
    pub(super) world: &'a World,
    pub(super) people: &'a [Person],
    pub(super) friends: &'a Friends,
    pub(super) seed: u64,
}

/// Makes the activity in the forums of a chunk of moderators.
pub(super) fn activity(ctx: &ActivityContext<'_>, chunk: usize) -> Activity {
    let mut maker = ActivityMaker { ctx, chunk: chunk as u64, made: Activity::default() };
    for moderator in chunk * CHUNK..ctx.people.len().min((chunk + 1) * CHUNK) {
        let mut random = RandomStream::new(domain(ctx.seed, super::ACTIVITY), moderator as u64);
        maker.wall(moderator as u32, &mut random);
        maker.albums(moderator as u32, &mut random);
        if random.chance(GROUP_CHANCE) {
            maker.group(moderator as u32, &mut random);
        }
    }
    maker.made
}

struct ActivityMaker<'a> {
    ctx: &'a ActivityContext<'a>,
    chunk: u64,
    made: Activity,
}

impl<'a> ActivityMaker<'a> {
    fn person(&self, person: u32) -> &'a Person {
        &self.ctx.people[person as usize]
    }

    fn friends(&self, person: u32) -> &'a [(u32, i64)] {
        self.ctx.friends.of(person as usize)
    }

    fn wall(&mut self, moderator: u32, random: &mut RandomStream) {
        let person = self.person(moderator);
        let (first, last) = (person.first_name, person.last_name);
        let created = person.created + 10 * SECOND;
        let forum = self.forum(moderator, format_smolstr!("Wall of {first} {last}"), created, person.interests.clone());
        let friends = self.friends(moderator);
        let members = friends.iter().map(|(friend, met)| (*friend, met + 10 * SECOND)).collect();
        let members = self.join(forum, members);
        for _ in 0..random.geometric(WALL_POSTS_A_FRIEND * friends.len() as f64) {
            self.text_post(forum, moderator, created, &members, random);
        }
    }

    fn albums(&mut self, moderator: u32, random: &mut RandomStream) {
        let person = self.person(moderator);
        let years = (END - person.created) as f64 / (365.0 * DAY as f64);
        for number in 0..random.geometric(ALBUMS_A_YEAR * years) {
            let created = person.created + DAY + random.below((END - person.created - 2 * DAY) as u64) as i64;
            let title = format_smolstr!("Album {number} of {} {}", person.first_name, person.last_name);
            let tag = person.interests[random.index(person.interests.len())];
            let forum = self.forum(moderator, title, created, vec![tag]);
            let invited = self.friends(moderator).iter().filter(|_| random.chance(ALBUM_SHARE));
            let members = invited.map(|(friend, met)| (*friend, (*met).max(created) + 10 * SECOND)).collect();
            let members = self.join(forum, members);
            let country = self.country(moderator, random);
            for photo in 0..random.geometric(PHOTOS_AN_ALBUM) {
                let date = created + (photo as i64 + 1) * SECOND;
                let tags = if random.chance(0.04) { vec![tag] } else { Vec::new() };
                if date < END {
                    let post = self.post(forum, moderator, date, country, None, tags);
                    self.like_post(post, PHOTO_LIKES, &members, random);
                }
            }
        }
    }

    fn group(&mut self, moderator: u32, random: &mut RandomStream) {
        let person = self.person(moderator);
        let created = person.created + DAY + random.below((END - person.created - 2 * DAY) as u64) as i64;
        let tag = person.interests[random.index(person.interests.len())];
        let (world, city) = (self.ctx.world, &self.ctx.world.cities[person.city].name);
        let title = format_smolstr!("Group for {} in {city}", world.tags[tag as usize].name);
        let forum = self.forum(moderator, title, created, vec![tag]);
        let mut members: Vec<u32> = vec![moderator];
        // Friends, friends of friends, and others.
        for _ in 0..5 + random.geometric(28.0) {
            let known = members[random.index(members.len())];
            let friends = self.friends(known);
            let other = match friends.len() {
                count if count > 0 && random.chance(0.8) => friends[random.index(count)].0,
                _ => random.index(self.ctx.people.len()) as u32,
            };
            if !members.contains(&other) {
                members.push(other);
            }
        }
        let mut joined: Vec<(u32, i64)> = Vec::new();
        for member in members {
            let from = created.max(self.person(member).created) + 10 * SECOND;
            joined.push((member, from + (random.unit() * 0.7 * (END - from) as f64) as i64));
        }
        joined[0].1 = created + 10 * SECOND;
        let members = self.join(forum, joined);
        for &(author, joined) in &members {
            for _ in 0..random.geometric(GROUP_POSTS_A_MEMBER) {
                self.text_post(forum, author, joined, &members, random);
            }
        }
    }

    fn forum(&mut self, moderator: u32, title: SmolStr, created: i64, tags: Vec<u32>) -> u32 {
        let forum = self.made.forums.len() as u32;
        let id = self.id(created, u64::from(forum));
        self.made.forums.push(Forum { id, title, created, moderator, tags });
        forum
    }

    /// Adds the members whose date is before the end. Returns them by date.
    fn join(&mut self, forum: u32, mut members: Vec<(u32, i64)>) -> Vec<(u32, i64)> {
        members.retain(|(_, joined)| *joined < END);
        members.sort_unstable_by_key(|&(person, joined)| (joined, person));
        let member = |&(person, joined): &(u32, i64)| Member { forum, person, joined };
        self.made.members.extend(members.iter().map(member));
        members
    }

    /// A unique id. `number` is unique among the elements of one kind in the chunk.
    fn id(&self, date: i64, number: u64) -> i64 {
        assert!(number < 1 << LOCAL_BITS, "few moderators have fewer than a million forums or messages");
        dated_id(date, self.chunk << LOCAL_BITS | number)
    }

    fn message_id(&self, date: i64) -> i64 {
        self.id(date, (self.made.posts.len() + self.made.comments.len()) as u64)
    }

    /// Draws the country from which a person writes.
    fn country(&self, person: u32, random: &mut RandomStream) -> usize {
        match random.chance(TRAVEL_CHANCE) {
            true => random.index(self.ctx.world.countries.len()),
            false => self.person(person).country,
        }
    }

    fn post(
        &mut self,
        forum: u32,
        author: u32,
        created: i64,
        country: usize,
        content: Option<(SmolStr, &'static str)>,
        tags: Vec<u32>,
    ) -> u32 {
        let post = self.made.posts.len() as u32;
        let id = self.message_id(created);
        let (content, language) = content.unzip();
        self.made.posts.push(Message { id, created, author, country, content, tags });
        self.made.containers.push(forum);
        self.made.languages.push(language);
        post
    }

    /// Adds a post with its comments and likes, by an author who joined at `joined`. `members` are by date of joining.
    fn text_post(&mut self, forum: u32, author: u32, joined: i64, members: &[(u32, i64)], random: &mut RandomStream) {
        let person = self.person(author);
        let (date, event_tag) = match self.event(person, joined, random) {
            Some((date, tag)) => (date, Some(tag)),
            None => (joined + 1 + random.below((END - joined) as u64) as i64, None),
        };
        if date >= END {
            return;
        }
        let mut tags: Vec<u32> = event_tag.into_iter().collect();
        for _ in 0..1 + random.index(5) {
            let tag = person.interests[random.index(person.interests.len())];
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let language = person.languages[random.index(person.languages.len())];
        let content = self.text(&tags, random);
        let country = self.country(author, random);
        let post = self.post(forum, author, date, country, Some((content, language)), tags);
        self.comments(post, members, random);
        self.like_post(post, POST_LIKES, members, random);
    }

    /// Draws an event about an interest of the person, after the person has joined: a date soon after it, and its tag.
    fn event(&self, person: &Person, joined: i64, random: &mut RandomStream) -> Option<(i64, u32)> {
        if !random.chance(EVENT_CHANCE) {
            return None;
        }
        let events = &self.ctx.world.events;
        let concerning = person.interests.iter().flat_map(|tag| events[*tag as usize].iter().map(|date| (*date, *tag)));
        let later: Vec<(i64, u32)> = concerning.filter(|(date, _)| *date > joined).collect();
        let (date, tag) = *later.get(random.index(later.len()))?;
        // Interest falls off within a day or two.
        Some((date + random.exponential(30.0 * HOUR as f64) as i64, tag))
    }

    fn comments(&mut self, post: u32, members: &[(u32, i64)], random: &mut RandomStream) {
        let first = self.made.comments.len();
        for _ in 0..random.geometric(COMMENTS_A_POST) {
            let replies = self.made.comments.len() - first;
            let parent = match replies {
                0 => Parent::Post(post),
                _ if random.chance(0.5) => Parent::Post(post),
                _ => Parent::Comment((first + random.index(replies)) as u32),
            };
            let to = match parent {
                Parent::Post(post) => &self.made.posts[post as usize],
                Parent::Comment(comment) => &self.made.comments[comment as usize],
            };
            // The author is a member, or joins within three days after the parent.
            let soon = members.partition_point(|(_, joined)| *joined < to.created + 3 * DAY);
            let Some(&(author, joined)) = members.get(random.index(soon.max(1))).filter(|_| soon > 0) else { break };
            let delay = random.exponential(10.0 * HOUR as f64) as i64 + SECOND;
            let created = to.created.max(joined) + delay;
            if created >= END {
                continue;
            }
            let about = to.tags.clone();
            self.comment(author, created, parent, about, random);
            let comment = self.made.comments.len() as u32 - 1;
            let likes = likes(comment, created, COMMENT_LIKES, members, random);
            self.made.comment_likes.extend(likes);
        }
    }

    fn comment(&mut self, author: u32, created: i64, parent: Parent, about: Vec<u32>, random: &mut RandomStream) {
        let (content, tags) = if random.chance(LONG_CHANCE) {
            let mut tags: Vec<u32> = about.into_iter().filter(|_| random.chance(0.8)).collect();
            let interests = &self.person(author).interests;
            for _ in 0..1 + random.index(3) {
                let own = interests[random.index(interests.len())];
                if !tags.contains(&own) {
                    tags.push(own);
                }
            }
            (self.text(&tags, random), tags)
        } else {
            (SmolStr::new_static(random.pick(&words::SHORT_ANSWERS)), Vec::new())
        };
        let (id, country) = (self.message_id(created), self.country(author, random));
        self.made.comments.push(Message { id, created, author, country, content: Some(content), tags });
        self.made.parents.push(parent);
    }

    fn like_post(&mut self, post: u32, mean: f64, members: &[(u32, i64)], random: &mut RandomStream) {
        let likes = likes(post, self.made.posts[post as usize].created, mean, members, random);
        self.made.post_likes.extend(likes);
    }

    /// Makes a text about tags.
    fn text(&self, tags: &[u32], random: &mut RandomStream) -> SmolStr {
        let mut text = String::new();
        let words = &self.ctx.world.words;
        let long = if random.chance(0.03) { 60 } else { 4 };
        for tag in tags {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str("About ");
            text.extend(self.ctx.world.tags[*tag as usize].name.chars().map(|c| if c == '_' { ' ' } else { c }));
            text.push(',');
            for _ in 0..2 + random.index(long) {
                text.push(' ');
                text.push_str(random.pick(words));
            }
            text.push('.');
        }
        text.into()
    }
}

/// Draws the likes of a message: distinct members, each after the message was written and the member joined.
fn likes(message: u32, created: i64, mean: f64, members: &[(u32, i64)], random: &mut RandomStream) -> Vec<Like> {
    let mut likes: Vec<Like> = Vec::new();
    if members.is_empty() {
        return likes;
    }
    // Most messages have no likes, a few have many.
    let mean = if random.chance(0.25) { 4.0 * mean } else { 0.0 };
    for _ in 0..random.geometric(mean).min(members.len() as u64) {
        let (person, joined) = members[random.index(members.len())];
        let date = created.max(joined) + SECOND + random.exponential(3.0 * DAY as f64) as i64;
        if date < END && likes.iter().all(|like| like.person != person) {
            likes.push(Like { person, message, date });
        }
    }
    likes
}
