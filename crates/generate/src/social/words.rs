//! The names of places, persons and things: word lists that the generators draw from.
//!
//! A list is a text with spaces between its entries. Names of persons depend on the culture of their country; several
//! countries may share a culture. Persons get the first entries of a list more often than the last. A change of a list,
//! or of its order, changes the graphs of all seeds.

/// Continents, by position.
pub(super) const CONTINENTS: [&str; 6] = ["Africa", "Asia", "Europe", "North_America", "South_America", "Oceania"];

/// A country.
pub(super) struct CountryEntry {
    pub(super) name: &'static str,
    pub(super) continent: usize,
    /// The share of the network's persons, relative to other countries.
    pub(super) weight: f64,
    /// A position in [`CULTURES`].
    pub(super) culture: usize,
    pub(super) languages: &'static str,
    pub(super) cities: &'static str,
}

const fn country(
    name: &'static str,
    continent: usize,
    weight: f64,
    culture: usize,
    languages: &'static str,
    cities: &'static str,
) -> CountryEntry {
    CountryEntry { name, continent, weight, culture, languages, cities }
}

/// Countries.
pub(super) const COUNTRIES: [CountryEntry; 60] = [
    country("India", 1, 170.0, 0, "hi en ta", "Mumbai Delhi Bangalore"),
    country("China", 1, 190.0, 1, "zh", "Shanghai Beijing Chengdu"),
    country("United_States", 3, 120.0, 2, "en es", "New_York Chicago Houston"),
    country("Indonesia", 1, 60.0, 3, "id", "Jakarta Surabaya Bandung"),
    country("Brazil", 4, 55.0, 4, "pt", "Sao_Paulo Salvador Recife"),
    country("Pakistan", 1, 40.0, 5, "ur en", "Karachi Lahore Faisalabad"),
    country("Nigeria", 0, 38.0, 6, "en yo", "Lagos Kano Ibadan"),
    country("Bangladesh", 1, 34.0, 0, "bn", "Dhaka Chittagong Khulna"),
    country("Russia", 2, 42.0, 7, "ru", "Moscow Kazan Omsk"),
    country("Mexico", 3, 36.0, 4, "es", "Guadalajara Puebla Tijuana"),
    country("Japan", 1, 38.0, 8, "ja", "Tokyo Osaka Nagoya"),
    country("Philippines", 1, 30.0, 3, "tl en", "Manila Davao Cebu"),
    country("Vietnam", 1, 28.0, 3, "vi", "Hanoi Hue Da_Nang"),
    country("Ethiopia", 0, 16.0, 6, "am", "Addis_Ababa Gondar Mekelle"),
    country("Egypt", 0, 22.0, 5, "ar", "Cairo Alexandria Giza"),
    country("Germany", 2, 34.0, 9, "de en", "Berlin Hamburg Leipzig"),
    country("Turkey", 1, 28.0, 5, "tr", "Istanbul Ankara Izmir"),
    country("Iran", 1, 24.0, 5, "fa", "Tehran Mashhad Shiraz"),
    country("Thailand", 1, 18.0, 3, "th", "Bangkok Chiang_Mai Hat_Yai"),
    country("France", 2, 28.0, 10, "fr", "Paris Lyon Toulouse"),
    country("United_Kingdom", 2, 30.0, 2, "en", "London Leeds Glasgow"),
    country("Italy", 2, 25.0, 4, "it", "Rome Milan Naples"),
    country("South_Africa", 0, 14.0, 6, "en zu af", "Johannesburg Durban Cape_Town"),
    country("South_Korea", 1, 20.0, 1, "ko", "Seoul Busan Daegu"),
    country("Spain", 2, 21.0, 4, "es ca", "Madrid Valencia Seville"),
    country("Colombia", 4, 18.0, 4, "es", "Bogota Cali Medellin"),
    country("Ukraine", 2, 16.0, 7, "uk ru", "Kyiv Kharkiv Lviv"),
    country("Tanzania", 0, 10.0, 6, "sw en", "Dar_es_Salaam Mwanza Dodoma"),
    country("Argentina", 4, 17.0, 4, "es", "Buenos_Aires Cordoba Rosario"),
    country("Kenya", 0, 11.0, 6, "sw en", "Nairobi Mombasa Kisumu"),
    country("Poland", 2, 16.0, 7, "pl", "Warsaw Krakow Gdansk"),
    country("Algeria", 0, 10.0, 5, "ar fr", "Algiers Oran Constantine"),
    country("Canada", 3, 17.0, 2, "en fr", "Toronto Montreal Calgary"),
    country("Morocco", 0, 10.0, 5, "ar fr", "Casablanca Fez Rabat"),
    country("Iraq", 1, 8.0, 5, "ar ku", "Baghdad Basra Mosul"),
    country("Peru", 4, 10.0, 4, "es qu", "Lima Arequipa Trujillo"),
    country("Uzbekistan", 1, 6.0, 7, "uz ru", "Tashkent Samarkand Bukhara"),
    country("Malaysia", 1, 11.0, 3, "ms en", "Kuala_Lumpur Ipoh Johor_Bahru"),
    country("Venezuela", 4, 9.0, 4, "es", "Caracas Maracaibo Valera"),
    country("Nepal", 1, 6.0, 0, "ne", "Kathmandu Pokhara Biratnagar"),
    country("Ghana", 0, 6.0, 6, "en", "Accra Kumasi Tamale"),
    country("Australia", 5, 11.0, 2, "en", "Sydney Melbourne Perth"),
    country("Netherlands", 2, 9.0, 9, "nl en", "Amsterdam Utrecht Eindhoven"),
    country("Sri_Lanka", 1, 6.0, 0, "si en", "Colombo Kandy Galle"),
    country("Chile", 4, 8.0, 4, "es", "Santiago Concepcion Temuco"),
    country("Romania", 2, 7.0, 7, "ro", "Bucharest Cluj Iasi"),
    country("Belgium", 2, 6.0, 10, "nl fr", "Brussels Antwerp Ghent"),
    country("Greece", 2, 5.0, 11, "el", "Athens Patras Heraklion"),
    country("Czech_Republic", 2, 5.0, 7, "cs", "Prague Brno Ostrava"),
    country("Portugal", 2, 5.0, 4, "pt", "Lisbon Porto Coimbra"),
    country("Sweden", 2, 6.0, 9, "sv en", "Stockholm Gothenburg Uppsala"),
    country("Hungary", 2, 5.0, 11, "hu", "Budapest Szeged Pecs"),
    country("Austria", 2, 4.0, 9, "de", "Vienna Graz Linz"),
    country("Switzerland", 2, 4.0, 9, "de fr it", "Zurich Geneva Basel"),
    country("Denmark", 2, 3.0, 9, "da en", "Copenhagen Aarhus Odense"),
    country("Finland", 2, 3.0, 11, "fi sv", "Helsinki Tampere Turku"),
    country("Norway", 2, 3.0, 9, "no en", "Oslo Bergen Stavanger"),
    country("Ireland", 2, 3.0, 2, "en ga", "Dublin Cork Limerick"),
    country("New_Zealand", 5, 3.0, 2, "en mi", "Auckland Wellington Dunedin"),
    country("Fiji", 5, 1.0, 3, "fj en", "Suva Nadi Lautoka"),
];

/// Prefixes that make names of further cities.
pub(super) const CITY_PREFIXES: &str = "North South East West New Old Upper Lower Port Mount Saint Great";

/// Names of one culture.
pub(super) struct Culture {
    pub(super) men: &'static str,
    pub(super) women: &'static str,
    pub(super) families: &'static str,
}

/// Cultures, by position.
pub(super) const CULTURES: [Culture; 12] = [
    Culture {
        men: "Rahul Amit Arjun Deepak Sanjay Vikram Rajesh Anil Kiran Mahinda Ravi Suresh Nikhil Ashok",
        women: "Priya Anjali Lakshmi Sunita Kavita Meera Pooja Divya Asha Nisha Rekha Sita Radha Leela",
        families: "Sharma Kumar Singh Rao Gupta Perera Khan Das Patel Reddy Nair Iyer Fernando Thapa Ghosh Bose",
    },
    Culture {
        men: "Wei Jun Lei Bo Jie Hao Ming Feng Yang Tao Jian Chen Min-jun Ji-hoon",
        women: "Fang Li Xiu Ying Na Jing Yan Mei Hui Lan Hong Juan Seo-yeon Ha-eun",
        families: "Wang Zhang Liu Yang Huang Zhao Wu Zhou Xu Sun Kim Park Lee Choi Hu Lin",
    },
    Culture {
        men: "John James Robert Michael William David Richard Thomas Charles Ian Peter Jack George Alan",
        women: "Mary Linda Susan Karen Emma Alice Olivia Sarah Jane Helen Grace Lucy Ruth Anne",
        families: "Smith Jones Brown Wilson Taylor Clark Walker White Hall Green Baker King Wright Hill Scott Murphy",
    },
    Culture {
        men: "Budi Agus Eko Anh Minh Duc Jose Ramon Somchai Ahmad Hadi Joko Rudi Tuan",
        women: "Siti Dewi Putri Lan Hoa Linh Maria Luz Malee Nur Rini Wati Sari Thuy",
        families: "Nguyen Tran Pham Santos Reyes Cruz Wijaya Santoso Hidayat Saetang Ismail Abdullah Bui Do Le Ocampo",
    },
    Culture {
        men: "Jose Juan Carlos Luis Miguel Pedro Paulo Antonio Marco Diego Rafael Giorgio Pablo Bruno",
        women: "Maria Ana Carmen Lucia Sofia Isabel Rosa Elena Camila Paula Giulia Marta Ines Clara",
        families: "Garcia Rodriguez Silva Santos Lopez Martinez Rossi Ferreira Gomez Diaz Costa Bianchi Torres Ramos Vega Souza",
    },
    Culture {
        men: "Mohamed Ali Ahmed Hassan Omar Mehmet Mustafa Reza Karim Bilal Yusuf Ibrahim Tariq Emre",
        women: "Fatima Aisha Zeynep Maryam Leila Amina Yasmin Elif Noor Sara Huda Samira Zahra Emine",
        families: "Khan Yilmaz Hosseini Hussein Demir Abbas Malik Karimi Saleh Aziz Kaya Rahimi Farouk Haddad Celik Mansour",
    },
    Culture {
        men: "Chinedu Kwame Tunde Sipho Abebe Juma Kofi Emeka Thabo Otieno Dawit Musa Baraka Themba",
        women: "Amara Abena Ngozi Thandi Makena Zola Akua Chioma Lerato Wanjiru Hana Neema Ife Nomsa",
        families: "Okafor Mensah Abiola Dlamini Tadesse Mwangi Boateng Eze Nkosi Odhiambo Bekele Kamau Owusu Ndlovu Ojo Banda",
    },
    Culture {
        men: "Ivan Dmitri Sergei Alexei Jan Piotr Pavel Andrei Oleg Mihai Tomas Viktor Bohdan Karel",
        women: "Olga Anna Natalia Irina Katarzyna Elena Tatiana Oksana Ewa Jana Ioana Svetlana Zofia Petra",
        families: "Ivanov Petrov Kowalski Novak Popescu Shevchenko Volkov Nowak Dvorak Ionescu Morozov Bondar Svoboda Karimov Kozlov Wozniak",
    },
    Culture {
        men: "Hiroshi Kenji Takeshi Akira Haruto Yuto Sota Kaito Ren Daiki Shinji Naoki",
        women: "Yuki Sakura Hana Aoi Keiko Yoko Emi Mika Rin Haruka Naomi Akiko",
        families: "Sato Suzuki Takahashi Tanaka Watanabe Ito Yamamoto Nakamura Kobayashi Kato Yoshida Mori",
    },
    Culture {
        men: "Hans Karl Lars Erik Jan Peter Stefan Jens Nils Wolfgang Sven Pieter Magnus Fritz",
        women: "Anna Ingrid Greta Heidi Eva Sofie Astrid Karin Ursula Maja Lena Birgit Elsa Freya",
        families: "Muller Schmidt Andersson Hansen Jansen Bakker Larsen Weber Fischer Nilsson Berg Huber Visser Keller Lund Wagner",
    },
    Culture {
        men: "Jean Pierre Louis Michel Philippe Luc Antoine Henri Julien Marc Hugo Olivier",
        women: "Marie Camille Sophie Julie Claire Louise Chloe Elise Manon Juliette Celine Margaux",
        families: "Martin Bernard Dubois Durand Moreau Laurent Lefebvre Roux Fournier Girard Peeters Dupont Lambert Janssens",
    },
    Culture {
        men: "Georgios Nikos Dimitris Laszlo Gabor Istvan Mika Juha Antti Zoltan Kostas Pekka",
        women: "Eleni Sofia Katerina Zsofia Eszter Aino Helmi Anni Ilona Vasiliki Judit Kaisa",
        families: "Papadopoulos Nagy Kovacs Korhonen Virtanen Szabo Nikolaou Toth Makinen Georgiou Horvath Nieminen",
    },
];

/// Kinds of companies. A company is named by its country and its kind.
pub(super) const COMPANY_KINDS: &str = "Airlines Telecom Bank Energy Railways Steel Motors Foods Insurance Media \
    Shipping Mining Textiles Software Chemicals Breweries Pharmaceuticals Logistics Electronics Cement Paper Dairy \
    Airways Express Publishing Instruments";

/// Names of universities; `%` stands for the city.
pub(super) const UNIVERSITY_KINDS: [&str; 5] =
    ["University_of_%", "%_Institute_of_Technology", "%_Medical_School", "%_Business_School", "%_Academy_of_Arts"];

/// The names that the tags of a class get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TagNaming {
    /// No names: the class has no tags.
    Nothing,
    /// A person's name.
    Person,
    /// A title of two or three words.
    Title,
    /// The name of a country, or of a former country.
    Country,
}

/// A class of tags: its name, its superclass, its share in 1,000 tags, the popularity of each of its tags relative to
/// others, and their names.
pub(super) type ClassEntry = (&'static str, &'static str, usize, f64, TagNaming);

/// The classes of tags, each after its superclass.
pub(super) const CLASSES: [ClassEntry; 44] = [
    ("Thing", "", 2, 0.5, TagNaming::Title),
    ("Agent", "Thing", 0, 0.0, TagNaming::Nothing),
    ("Person", "Agent", 95, 2.0, TagNaming::Person),
    ("Artist", "Person", 8, 3.0, TagNaming::Person),
    ("MusicalArtist", "Artist", 60, 6.0, TagNaming::Person),
    ("Actor", "Artist", 8, 4.0, TagNaming::Person),
    ("Comedian", "Artist", 5, 2.0, TagNaming::Person),
    ("ComicsCreator", "Artist", 3, 1.0, TagNaming::Person),
    ("Writer", "Artist", 26, 4.0, TagNaming::Person),
    ("Athlete", "Person", 5, 2.0, TagNaming::Person),
    ("TennisPlayer", "Athlete", 26, 3.0, TagNaming::Person),
    ("SoccerPlayer", "Athlete", 12, 4.0, TagNaming::Person),
    ("BasketballPlayer", "Athlete", 5, 3.0, TagNaming::Person),
    ("BaseballPlayer", "Athlete", 5, 2.0, TagNaming::Person),
    ("Cricketer", "Athlete", 4, 3.0, TagNaming::Person),
    ("Cyclist", "Athlete", 3, 1.0, TagNaming::Person),
    ("Boxer", "Athlete", 2, 1.0, TagNaming::Person),
    ("Politician", "Person", 5, 2.0, TagNaming::Person),
    ("President", "Politician", 6, 4.0, TagNaming::Person),
    ("PrimeMinister", "Politician", 4, 3.0, TagNaming::Person),
    ("Senator", "Politician", 3, 1.0, TagNaming::Person),
    ("Governor", "Politician", 3, 1.0, TagNaming::Person),
    ("OfficeHolder", "Person", 28, 3.0, TagNaming::Person),
    ("Monarch", "Person", 8, 3.0, TagNaming::Person),
    ("Scientist", "Person", 14, 4.0, TagNaming::Person),
    ("Philosopher", "Person", 8, 4.0, TagNaming::Person),
    ("Architect", "Person", 3, 1.0, TagNaming::Person),
    ("MilitaryPerson", "Person", 6, 2.0, TagNaming::Person),
    ("Cleric", "Person", 3, 1.0, TagNaming::Person),
    ("Saint", "Cleric", 4, 2.0, TagNaming::Person),
    ("Organisation", "Agent", 2, 1.0, TagNaming::Title),
    ("Band", "Organisation", 8, 4.0, TagNaming::Title),
    ("Company", "Organisation", 4, 1.0, TagNaming::Title),
    ("Work", "Thing", 4, 1.0, TagNaming::Title),
    ("Film", "Work", 8, 3.0, TagNaming::Title),
    ("Book", "Work", 6, 2.0, TagNaming::Title),
    ("MusicalWork", "Work", 5, 0.5, TagNaming::Title),
    ("Album", "MusicalWork", 300, 0.5, TagNaming::Title),
    ("Single", "MusicalWork", 240, 0.4, TagNaming::Title),
    ("Song", "MusicalWork", 30, 1.0, TagNaming::Title),
    ("Place", "Thing", 0, 0.0, TagNaming::Nothing),
    ("PopulatedPlace", "Place", 2, 1.0, TagNaming::Title),
    ("Country", "PopulatedPlace", 30, 12.0, TagNaming::Country),
    ("Award", "Thing", 3, 1.0, TagNaming::Title),
];

/// Prefixes that make names of former countries.
pub(super) const COUNTRY_FORMS: &str = "Kingdom_of Republic_of Duchy_of Empire_of Province_of Federation_of Islands_of";

/// The first words of titles.
pub(crate) const ADJECTIVES: &str = "Silent Golden Broken Electric Midnight Crimson Hollow Endless Wild Paper Frozen \
    Burning Distant Secret Velvet Lonely Sacred Hidden Restless Silver Fallen Bitter Shining Gentle Ancient Neon Lost \
    Blue Scarlet Wandering Quiet Rising Falling Invisible Perfect Strange Little Great Last First Second Northern";

/// The last words of titles.
pub(crate) const NOUNS: &str = "River Night Heart Road Garden Machine Mirror Summer Winter Storm Shadow Dream Fire \
    Stone Ocean City Letter Song Dance Window Kingdom Horizon Forest Light Train Bridge Morning Island Desert Star \
    Voice Wheel Tower Memory Thunder Rain Circus Parade Harbor Valley Echo Mountain Ghost Rose Engine Mask";

/// Words of messages.
pub(crate) const WORDS: &str = "the a of and in to was is for by with from as at his her their its first later known \
    early late work career world group member part history release record life years public great major often during \
    between after before while album song film book team season title award house city country king war peace treaty \
    party office law school theory number music voice guitar band tour role character story novel poem art style";

/// The texts of short comments.
pub(super) const SHORT_ANSWERS: [&str; 16] = [
    "yes",
    "no",
    "ok",
    "thanks",
    "thx",
    "LOL",
    "great",
    "cool",
    "good",
    "maybe",
    "I see",
    "right",
    "fine",
    "duh",
    "no way!",
    "not so sure",
];

/// Browsers, with the percentage of persons who use them.
pub(super) const BROWSERS: [(&str, f64); 5] =
    [("Firefox", 41.0), ("Chrome", 29.0), ("Internet Explorer", 24.0), ("Safari", 3.5), ("Opera", 2.5)];

/// The hosts of mail addresses.
pub(super) const MAIL_HOSTS: [&str; 6] = ["gmail.com", "yahoo.com", "hotmail.com", "gmx.com", "zoho.com", "mail.com"];
