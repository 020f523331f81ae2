"""Does the report do in a browser what it says: filter, pin, sort, save, keep the choice in its address?"""

import csv
import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sb3_fair.common.front import Front
from sb3_fair.report import write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"no Chromium that starts: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def opened(browser):
    """A function that opens a page, and fails the test if the page complains of anything."""
    complaints, pages = [], []

    def open_(path, fragment="", **settings):
        page = browser.new_page(**settings)
        page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"file://{path}{fragment}")
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.close()
    assert complaints == []


def rows(page):
    return page.locator("#table tbody.policies tr").evaluate_all("rows => rows.map(row => Number(row.dataset.policy))")


def test_sliders_keep_the_policies_that_reach_as_much(tmp_path, opened, front, baselines):
    policies = Front(tuple(with_groups(policy, 30) for policy in front))
    report = write_report(tmp_path, policies, baselines=baselines)
    page = opened(report, "#policy=3")
    page.locator("#table-card summary").click()
    slider = page.locator('[data-goal="R"]')
    slider.fill("500")
    middle = (front.means[:, 0].min() + front.means[:, 0].max()) / 2
    kept = [number for number, mean in enumerate(front.means[:, 0]) if mean >= middle]
    sync_api.expect(page.locator("#table tbody.policies tr")).to_have_count(len(kept))
    assert rows(page) == kept
    assert page.locator("#kept").inner_text() == f"{len(kept)} of {len(front)} policies are left."
    assert slider.get_attribute("aria-valuetext") == page.locator("#sliders output").first.inner_text() != "any"
    again = opened(report, "#" + page.url.partition("#")[2])
    for part in ("#groups", "#short", "#chosen"):
        assert page.locator(part).inner_html() == again.locator(part).inner_html()
    listed = page.locator("[data-short]").evaluate_all("cards => cards.map(card => Number(card.dataset.short))")
    assert listed and set(listed) <= set(kept)
    page.locator("#reset").click()
    assert len(rows(page)) == len(front)


def test_two_pinned_policies_stand_side_by_side_with_their_difference(tmp_path, opened, front):
    page = opened(write_report(tmp_path, front), "#policy=0")
    page.locator("#pin").click()
    page.locator("#pick").select_option("17")
    page.locator("#pin").click()
    line = page.locator("#compare tbody tr").first.locator("td").all_inner_texts()
    apart = front[0].mean[0] - front[17].mean[0]
    assert float(line[3].split(" ± ")[0].replace("−", "-")) == pytest.approx(apart, abs=0.06)
    assert line[4] == f"{front[0].name} is better"


def compared(page):
    """The sentences of the chosen policy; difference and verdict of each line of the comparison."""
    lines = [line.locator("td").all_inner_texts()[3:] for line in page.locator("#compare tbody tr").all()]
    return page.locator("#chosen .note").all_inner_texts(), lines


def test_only_policies_that_no_objective_tells_apart_are_called_alike(tmp_path, opened, front):
    steady, noise = front[0], np.array([-1.0, 1.0] * 5)[:, None]
    means = {"noisy": (11.5, 3), "middle": (11, 0.2), "low": (10, 0.2)}
    policies = [
        replace(steady, name=name, objectives=("R",), returns=mean + size * noise, final={})
        for name, (mean, size) in means.items()
    ]
    report = write_report(tmp_path, Front(tuple(policies)))
    page = opened(report, "#policy=1&pin=1,2")
    notes, ((_, verdict),) = compared(page)
    assert notes == ["In performance, alike within their confidence intervals: noisy."]
    assert verdict == "middle is better"
    assert page.locator("#key").inner_text() == "good performance"
    notes, _ = compared(opened(report, "#policy=0&least.0=10.5"))
    assert notes == ["In performance, alike within their confidence intervals: middle."], "low is not shown"


def test_one_episode_gives_no_interval_and_no_verdict(tmp_path, opened, front):
    single = [replace(policy, returns=policy.returns[:1], lengths=policy.lengths[:1], final={}) for policy in front[:2]]
    page = opened(write_report(tmp_path, Front(tuple(single))), "#policy=0&pin=0,1")
    notes, lines = compared(page)
    assert notes == []
    assert all(difference.endswith(" ± –") and verdict == "may be chance" for difference, verdict in lines)
    assert "Mean of 1 evaluation episode of" in page.locator("#chosen .hint").inner_text()
    assert "1 evaluation episode each" in page.locator("#facts").inner_text()


def test_of_what_is_best_at_zero_the_sizes_are_compared_and_tiny_figures_have_digits(tmp_path, opened, front):
    noise = front[0].returns[:, 1] - front[0].mean[1]
    alone = replace(front[0], objectives=("R",), returns=front[0].returns[:, :1] * 1e-6)
    policies = tuple(replace(alone, name=str(gap), final={"dp": gap + 3 * noise}) for gap in (0.299, -0.305))
    page = opened(write_report(tmp_path, Front(policies)), "#policy=0&pin=0,1")
    difference, verdict = compared(page)[1][0]
    assert (difference.split(" ± ")[0], verdict) == ("−0.006", "may be chance")
    assert f"{alone.mean[0]:.6f}" in page.locator("#compare tbody td").all_inner_texts()


def test_a_heading_sorts_the_table(tmp_path, opened, front):
    page = opened(write_report(tmp_path, front))
    page.locator("summary").click()
    page.locator("#table thead button").first.click()
    assert rows(page) == np.argsort(-front.means[:, 0]).tolist()


def test_what_is_shown_can_be_saved(tmp_path, opened, front, baselines):
    evil = replace(baselines[0], name='=1+1,"<b>')
    page = opened(write_report(tmp_path, front, baselines=(evil,)), "#policy=3&least.0=10")
    with page.expect_download() as saving:
        page.locator("#csv").click()
    lines = list(csv.DictReader(saving.value.path().read_text().splitlines()))
    kept = [mean for mean in front.means[:, 0] if mean >= 10]
    assert [float(line["R"]) for line in lines[:-1]] == pytest.approx(kept)
    assert lines[-1]["policy"] == "'" + evil.name
    with page.expect_download() as saving:
        page.locator("#json").click()
    assert json.loads(saving.value.path().read_text())[-1]["policy"] == evil.name


def test_the_address_keeps_the_choice(tmp_path, opened, front):
    report = write_report(tmp_path, front)
    page = opened(report)
    page.locator("#codes").check()
    page.locator("#pick").select_option("5")
    page.locator("#pin").click()
    page.locator('[data-goal="SP"]').fill("300")
    page.wait_for_url(lambda url: "least" in url.partition("#")[2])
    again = opened(report, "#" + page.url.partition("#")[2])
    assert again.locator("#chosen h2").inner_text() == front[5].name
    assert again.locator("#pin").inner_text() == "Unpin"
    assert again.locator("#kept").inner_text() == page.locator("#kept").inner_text() != ""
    assert again.locator("#table-card").is_visible()
    assert again.locator(".short dt").first.inner_text() == "R"


def test_the_mouse_lights_a_line_up_and_chooses_it(tmp_path, opened, front):
    page = opened(write_report(tmp_path, front), "#policy=0", viewport={"width": 1366, "height": 700})
    chart = page.get_by_role("img", name="Every policy is a line")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    least = int(front.means[:, 0].argmin())
    across = 0.45 / (7 + 0.9) * (box["width"] - 8) + 4  # the lower end of the first of eight axes
    place = {"x": across + 1, "y": 4 + (1.26 - 0) / 1.4 * (box["height"] - 8)}
    chart.hover(position=place)
    assert page.locator(".tip b").inner_text() == front[least].name
    tip = page.locator(".tip").bounding_box()
    assert tip["y"] >= 0 and tip["y"] + tip["height"] <= 700
    chart.click(position=place)
    assert page.locator("#chosen h2").inner_text() == front[least].name


def test_keys_choose_rows_and_keep_their_place(tmp_path, opened, front):
    page = opened(write_report(tmp_path, front))
    page.locator("#table-card summary").press("Enter")
    for key, chosen in {
        'tr[data-policy="4"]': 4,
        "#table th:nth-child(3) button": 4,
        '[data-short="2"]': 2,
        "#pin": 2,
    }.items():
        page.locator(key).press("Enter")
        assert page.locator(key).evaluate("key => key === document.activeElement"), key
        assert page.locator("#chosen h2").inner_text() == front[chosen].name


def test_long_names_are_whole_and_nothing_is_wider_than_a_phone(tmp_path, opened, front, baselines):
    long = "a name that says how it was trained, on what, by whom and why"
    policies = [replace(with_groups(policy, 30), name=f"{policy.name}, {long}") for policy in front]
    people = {"": {long: policies[0].groups[""]["f"]}}
    rules = [replace(with_groups(baselines[0], 0), name=name, groups=people) for name in ("hire all", "all")]
    page = opened(
        write_report(tmp_path, Front(tuple(policies)), baselines=rules), viewport={"width": 390, "height": 800}
    )
    for summary in ("#table-card summary", "#groups summary"):
        page.locator(summary).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    cells = "[...document.querySelectorAll('td')]"
    assert page.evaluate(f"{cells}.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length") == 0
    assert page.locator("#groups summary").inner_text() == "The other simple rule"
    page.locator("#pick").select_option("4")
    assert page.locator("#groups details[open]").count() == 1, "what is unfolded stays so"
    named = page.locator("#pair-0 .textpoint").all_text_contents()
    assert "hire allall" in named and "all" not in named, "rules at one place are named together"


def with_groups(policy, favourable):
    """The policy with as many favourable decisions on women and men, of 100 in each episode."""
    counts = {"f": favourable, "m": 50}
    groups = {name: np.tile([100, hired, 0, 0, 0, 0, 0, 0], (10, 1)) for name, hired in counts.items()}
    return replace(policy, groups={"": groups})


def test_groups_stand_below_the_name_of_each_policy_and_rule(tmp_path, opened, front, baselines):
    policies = Front(tuple(with_groups(policy, 30) for policy in front))
    rules = [with_groups(rule, 0) for rule in baselines]
    page = opened(
        write_report(tmp_path, policies, baselines=rules), "#policy=3", viewport={"width": 390, "height": 800}
    )
    heads = page.locator("#groups > .scroll tbody th").all_inner_texts()
    assert heads[0].startswith("PCN 3") and sum(head.startswith("rule: ") for head in heads) == 1
    assert page.locator("#groups details tbody th").count() == len(rules) - 1
    cells = page.locator("#groups tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[:3] == ["f", "1,000", "30.0 % (27.2 % to 32.9 %)"]
    assert page.locator("#groups tbody td").nth(0).bounding_box()["width"] < 100, "figures are beside it on a phone"
    alone = opened(write_report(tmp_path, Front(policies[:1]), baselines=rules))
    assert alone.locator("#groups > .scroll tbody th").count() == 1 + len(rules)


def test_shares_of_known_outcomes_are_called_so(tmp_path, opened, front):
    for refused, heading, note in (
        (70, "of those who deserved it", ""),
        (0, "of those known to have deserved it", "Not every outcome is known."),
    ):  # outcomes are known of 30 who got the favourable decision and of so many who were refused
        counts = np.tile([100, 30, 30, 30, refused, 0, 30 + refused, 30], (10, 1))
        policies = Front((replace(front[0], groups={"": {"f": counts}}),))
        page = opened(write_report(tmp_path, policies, words={"deserving": "qualified"}))
        assert f"{heading} (qualified)" in page.locator("#groups thead th").all_inner_texts()
        hints = page.locator("#groups .hint").all_inner_texts()
        assert hints[0].startswith(note or "These shares count all episodes together.") and len(hints) == 1 + bool(note)


def test_a_rule_that_beats_a_policy_is_named_with_what_it_is_better_in(tmp_path, opened, front, baselines):
    lone = replace(front[0], objectives=("R",), returns=front[0].returns[:, :1])
    better = replace(baselines[0], objectives=("R",), returns=lone.returns + 9)
    page = opened(write_report(tmp_path, Front((lone,)), baselines=(better,)))
    assert page.locator("#chosen .note").inner_text() == "In performance, the rule “hire all” is better."
    assert page.locator("#table b").count() == 0 and not page.locator("#bold-hint").is_visible()
    assert [bool(hint) for hint in page.locator(".even-hint").all_text_contents()] == [False, True, False, True]
    equal = replace(front[0], name="reject all")
    page = opened(write_report(tmp_path, Front((front[0],)), baselines=(equal,)))
    assert page.locator("#chosen .note").inner_text() == "The very same: reject all."
    told = "Individual fairness is below 0 even where everybody is treated alike"
    assert told in page.locator("#table-card .even-hint").inner_text()
    assert told in page.locator("#short-card .even-hint").text_content()


def test_nothing_is_cut_off_on_paper(tmp_path, opened, front, baselines, curves):
    policies = Front(tuple(with_groups(policy, 30) for policy in front))
    rules = [with_groups(rule, 0) for rule in baselines]
    page = opened(
        write_report(tmp_path, policies, baselines=rules, curves=curves), viewport={"width": 1366, "height": 900}
    )
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.classList.contains('paper')")
    wider = """[...document.querySelectorAll('.main-svg, table')].filter(
        (part) => part.getBoundingClientRect().right > document.querySelector('main').getBoundingClientRect().right)"""
    assert page.evaluate(f"{wider}.length") == 0
    assert names_that_collide(page) == []
    breaks = "getComputedStyle(document.getElementById('{}')).breakInside"
    assert [page.evaluate(breaks.format(card)) for card in ("groups-card", "parallel-card")] == ["auto", "avoid"]
    assert page.locator("details:not([open]):not(.use)").count() == 0 and not page.locator(".use").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    chart = page.locator("#parallel .main-svg").first
    for _ in range(100):  # Plotly resizes later, and the page's policy refuses wait_for_function
        if chart.bounding_box()["width"] > 750:
            break
        page.wait_for_timeout(50)
    assert chart.bounding_box()["width"] > 750


def names_that_collide(page):
    """Names of axes that overlap the next one or leave the chart, and of axes of the radar that leave theirs."""
    boxes = """texts => texts.map(text => [text.textContent, text.getBoundingClientRect()])
        .map(([text, { left, right, top, bottom }]) => [text, left, right, top, bottom])"""
    names = page.locator("#parallel .annotation-text").evaluate_all(boxes)[::3]  # of each axis its name, top, bottom
    found = [left[0] for left, right in pairwise(names) if left[2] > right[1] + 1]
    assert len(names) > 1
    for chart, texts in (
        ("#parallel", names),
        ("#radar", page.locator("#radar .angularaxistick text").evaluate_all(boxes)),
    ):
        ((_, *ends),) = page.locator(f"{chart} .main-svg").first.evaluate_all(boxes)
        found += [text for text, *box in texts if any(np.subtract(box, ends) * [1, -1, 1, -1] < -1)]
    return found


@pytest.mark.parametrize(
    ("width", "objectives", "attributes"),
    [(390, 3, [""]), (720, 2, [""]), (1000, 3, [""]), (1366, 2, ["@sex", "@sex+age"])],
)
def test_names_of_axes_neither_overlap_nor_are_cut_off(tmp_path, opened, front, width, objectives, attributes):
    names = [(notion, of) for notion in ("SP", "EO", "OAE", "PP", "PE") for of in attributes]
    policies = [
        replace(
            policy,
            objectives=policy.objectives[:objectives],
            returns=policy.returns[:, :objectives],
            final={f"{notion}{of}": policy.final[notion] for notion, of in names},
        )
        for policy in front
    ]
    page = opened(write_report(tmp_path, Front(tuple(policies))), viewport={"width": width, "height": 800})
    assert names_that_collide(page) == []


@pytest.mark.slow
def test_a_thousand_policies_open_within_two_seconds(tmp_path, browser, front):
    rng = np.random.default_rng(0)
    many = tuple(
        replace(front[0], name=f"PCN {number}", returns=front[0].returns + rng.normal(size=(10, 3)) * [5, 0.1, 0.1])
        for number in range(1000)
    )
    report = write_report(tmp_path, Front(many))
    assert report.stat().st_size < 10_000_000
    page = browser.new_page(viewport={"width": 1366, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # not on the clock: others run
    page.goto(report.as_uri())
    page.locator("#pick option").nth(999).wait_for(state="attached")
    seconds = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    page.close()
    assert 0.1 < seconds["TaskDuration"] < 2, seconds
