"""Persian: every kind of writing that a transcript holds, and what is said for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.config import TextConfig
from myxtts.languages.fa.numbers import cardinal
from myxtts.text import clean_text

APART = TextConfig(join_suffixes=False)
NJ = "\u200c"

LETTERS = [
    ("كتاب", "کتاب"),
    ("علي", "علی"),
    ("حتى", "حتی"),
    ("سورة", "سوره"),
    ("خانۀ ما", "خانهٔ ما"),
    ("خانه\u0654 ما", "خانهٔ ما"),
    ("\u06d5\u0654", "هٔ"),
    ("مؤمن", "مؤمن"),
    ("رأس", "رأس"),
    ("مسئول", "مسئول"),
    ("جزء", "جزء"),
    ("أحمد", "احمد"),
    ("إیران", "ایران"),
    ("ٱلله", "الله"),
    ("آب", "آب"),
    ("ا\u0653ب", "آب"),
    ("مسی\u0654ول", "مسئول"),
    ("کـتـــاب", "کتاب"),
    ("ﻻ ﺳﻼﻡ", "لا سلام"),
    ("ہے", "هی"),
    ("\u200fسلام\u200e", "سلام"),
    ("کِتابٌ بُزُرگّ", "کِتابٌ بُزُرگّ"),
    ("واقعاً", "واقعاً"),
]
SPACES = [
    (f"می{NJ}روم", f"می{NJ}روم"),
    (f"کتاب{NJ}ها", f"کتاب{NJ}ها"),
    (f"کتاب{NJ}{NJ}ها", f"کتاب{NJ}ها"),
    (f"کتاب {NJ}خوب{NJ} است", "کتاب خوب است"),
    (f"کار{NJ}ها", "کارها"),
    ("می\u200bروم", f"می{NJ}روم"),
    ("می¬روم", f"می{NJ}روم"),
    ("می روم", f"می{NJ}روم"),
    ("نمی خواهم", f"نمی{NJ}خواهم"),
    ("کتاب های من", f"کتاب{NJ}های من"),
    ("بزرگ ترین", f"بزرگ{NJ}ترین"),
    ("کار ها", "کارها"),
    ("خانه ی او", f"خانه{NJ}ی او"),
    ("رفته اند", f"رفته{NJ}اند"),
    ("نیمی از ما", "نیمی از ما"),
    ("  سلام \u00a0 دنیا ", "سلام دنیا"),
]
NUMBERS = [
    ("0", "صفر"),
    ("۱۲۳", "صد و بیست و سه"),
    ("١٢٣", "صد و بیست و سه"),
    ("۱۳۰۰", "هزار و سیصد"),
    ("2000", "دو هزار"),
    ("1000000", "یک میلیون"),
    ("۱٬۲۵۰", "هزار و دویست و پنجاه"),
    ("1,250,000", "یک میلیون و دویست و پنجاه هزار"),
    ("1.250.000", "یک میلیون و دویست و پنجاه هزار"),
    ("3000000000", "سه میلیارد"),
    ("1000000000000000", "یک کوادریلیون"),
    ("-5", "منفی پنج"),
    ("−۱۲", "منفی دوازده"),
    ("+5", "مثبت پنج"),
    ("007", "صفر صفر هفت"),
    ("۳٫۱۴", "سه ممیز چهارده"),
    ("3.05", "سه ممیز صفر پنج"),
    ("2.71828", "دو ممیز هفت یک هشت دو هشت"),
    ("۱م", "یکم"),
    ("۲ام", "دوم"),
    ("۳اُم", "سوم"),
    (f"۳۰{NJ}ام", f"سی{NJ}ام"),
    ("۱۰مین", "دهمین"),
    ("2024م", "دو هزار و بیست و چهار میلادی"),
    ("۱/۲", "یک دوم"),
    ("۳/۴", "سه چهارم"),
    ("½", "یک دوم"),
    ("2½", "دو و یک دوم"),
    ("۱۲/۵", "دوازده ممیز پنج"),
    ("۳/۵ میلیون", "سه ممیز پنج میلیون"),
    ("۱۰-۱۵", "ده تا پانزده"),
    ("۱۰ – ۱۵ نفر", "ده تا پانزده نفر"),
    ("۳-۲", "سه دو"),
    ("۲۰۰تایی", "دویست تایی"),
    ("1.2.3", "یک نقطه دو نقطه سه"),
    ("5²", "پنج به توان دو"),
]
AMOUNTS = [
    ("۵۰٪", "پنجاه درصد"),
    ("٪۵۰", "پنجاه درصد"),
    ("50 %", "پنجاه درصد"),
    ("۲٫۵٪", "دو ممیز پنج درصد"),
    ("۱۰-۱۵٪", "ده تا پانزده درصد"),
    ("۵۰۰ ریال", "پانصد ریال"),
    ("۵۰۰﷼", "پانصد ریال"),
    ("2,000 تومان", "دو هزار تومان"),
    ("$20", "بیست دلار"),
    ("20$", "بیست دلار"),
    ("€20.50", "بیست یورو و پنجاه سنت"),
    ("$2 میلیون", "دو میلیون دلار"),
    ("-$5", "منفی پنج دلار"),
    ("5km", "پنج کیلومتر"),
    ("70 kg", "هفتاد کیلوگرم"),
    ("۱۰ کیلومتر", "ده کیلومتر"),
    ("30m²", "سی متر مربع"),
    ("25°C", f"بیست و پنج درجه سانتی{NJ}گراد"),
    ("120km/h", "صد و بیست کیلومتر بر ساعت"),
    ("5G", "پنج g"),
    ("09123456789", "صفر نهصد و دوازده سیصد و چهل و پنج شصت و هفت هشتاد و نه"),
    ("0912 345 6789", "صفر نهصد و دوازده سیصد و چهل و پنج شصت و هفت هشتاد و نه"),
    ("021-88776655", "صفر بیست و یک هشتاد و هشت هفتاد و هفت شصت و شش پنجاه و پنج"),
    ("+1 202 555 0123", "مثبت یک دویست و دو پانصد و پنجاه و پنج صفر صد و بیست و سه"),
    (
        "9123456789",
        "نه میلیارد و صد و بیست و سه میلیون و چهارصد و پنجاه و شش هزار و هفتصد و هشتاد و نه",
    ),
]
DATES = [
    ("1402/05/13", "سیزدهم مرداد هزار و چهارصد و دو"),
    ("۱۴۰۲/۵/۱۳", "سیزدهم مرداد هزار و چهارصد و دو"),
    ("۱۳/۵/۱۴۰۲", "سیزدهم مرداد هزار و چهارصد و دو"),
    ("98/1/1", "یکم فروردین نود و هشت"),
    ("1402/12/30", f"سی{NJ}ام اسفند هزار و چهارصد و دو"),
    ("2024-05-13", "سیزدهم مه دو هزار و بیست و چهار"),
    ("13/5/2024", "سیزدهم مه دو هزار و بیست و چهار"),
    ("2024-13-45", "دو هزار و بیست و چهار سیزده چهل و پنج"),
    ("ساعت ۱۴:۳۰", "ساعت چهارده و سی دقیقه"),
    ("14:00", "ساعت چهارده"),
    ("8:05:09", "هشت و پنج دقیقه و نه ثانیه"),
    ("9:00-17:00", "ساعت نه تا ساعت هفده"),
    ("سال ۱۳۵۷ ه.ش.", "سال هزار و سیصد و پنجاه و هفت هجری شمسی"),
]
MARKS = [
    ("سلام, چطوری?", "سلام، چطوری؟"),
    ("سلام ، خوبی ؟", "سلام، خوبی؟"),
    ("گفت:«برو»", "گفت: برو"),
    ("«کتاب»ها", f"کتاب{NJ}ها"),
    ("صبر کن…", "صبر کن..."),
    ("چی؟؟!!", "چی؟!"),
    ("رفت.آمد", "رفت. آمد"),
    ("( او )", "(او)"),
    ("پیامبر(ص)", "پیامبر صلی الله علیه و آله"),
    ("a & b", "a و b"),
    ("سایت www.example.com/a-b.", "سایت example دات com اسلش a خط تیره b."),
    ("info@example.ir", "info اَت example دات ir"),
    ("#سلام_دنیا", "هشتگ سلام دنیا"),
    ("سلام 😀", "سلام"),
]


@pytest.mark.parametrize(
    ("written", "said"), [*LETTERS, *SPACES, *NUMBERS, *AMOUNTS, *DATES, *MARKS]
)
def test_persian_is_written_as_it_is_said(written: str, said: str) -> None:
    assert clean_text(written, "fa") == said


@pytest.mark.parametrize("written", ["کتاب ها", "می روم", "خانه ی او", "رفته اند", "بزرگ تر"])
def test_suffixes_stay_apart_where_joining_is_off(written: str) -> None:
    assert clean_text(written, "fa", APART) == written


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("none", "شبکه bbc و hello"),
        ("capitals", "شبکه بی بی سی و hello"),
        ("all", "شبکه بی بی سی و اِچ ای اِل اِل اُ"),
    ],
)
def test_latin_words_are_spelled_where_asked(which: str, said: str) -> None:
    config = TextConfig.model_validate({"spell_latin": which})
    assert clean_text("شبکه BBC و Hello", "fa", config) == said


ONES = dict(zip("یک دو سه چهار پنج شش هفت هشت نه".split(), range(1, 10), strict=True))
TEENS = "ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده".split()
VALUES = ONES | dict(zip(TEENS, range(10, 20), strict=True))
VALUES |= dict(
    zip("بیست سی چهل پنجاه شصت هفتاد هشتاد نود".split(), range(20, 100, 10), strict=True)
)
HUNDREDS = "صد دویست سیصد چهارصد پانصد ششصد هفتصد هشتصد نهصد".split()
VALUES |= dict(zip(HUNDREDS, range(100, 1000, 100), strict=True))
SCALES = {"هزار": 10**3, "میلیون": 10**6, "میلیارد": 10**9, "تریلیون": 10**12, "کوادریلیون": 10**15}


def value_of(words: str) -> int:
    total = group = 0
    for word in words.split():
        if word in SCALES:
            total += (group or 1) * SCALES[word]
            group = 0
        elif word != "و":
            group += VALUES[word]
    return total + group


@settings(max_examples=300, deadline=None, database=None)
@given(st.integers(1, 10**15) | st.integers(1, 10**6))
def test_number_words_count_back_to_the_number(number: int) -> None:
    assert value_of(cardinal(number)) == number


PIECES = [
    *"سلامیهتربأإةىكۀە۰۱۲٣٤56.,،٬٫/:-–+%٪$€﷼()«»\"'?!…؛;#@_&ـًّٔ\u0653\u200b\u200c\u200e¬ kmgGUS°½²\n"
]
PIECES += ["http://", "ه.ش", "ام", "م", "ساعت ", "می ", " ها", " تر", "1402/5/13", "0912", "(ره)"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20)
CONFIGS = st.builds(
    TextConfig,
    join_suffixes=st.booleans(),
    spell_latin=st.sampled_from(["none", "capitals", "all"]),
)


@settings(max_examples=500, deadline=None, database=None)
@given(text=TEXTS, config=CONFIGS)
def test_persian_cleaned_twice_is_cleaned_once(text: str, config: TextConfig) -> None:
    once = clean_text(text, "fa", config)
    assert clean_text(once, "fa", config) == once


@settings(max_examples=300, deadline=None, database=None)
@given(text=TEXTS)
def test_no_digit_and_no_letter_of_arabic_alone_is_left(text: str) -> None:
    cleaned = clean_text(text, "fa")
    assert not set(cleaned) & set("يىكةإٱەۀہھـ٪٬٫«»\u200b\u200d")
    assert not any(character.isdecimal() for character in cleaned)
