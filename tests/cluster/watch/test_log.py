"""An outage is two lines, however many watches notice it and however long after each other."""

from __future__ import annotations

import asyncio

from joulie.cluster.port import NODE_TWINS, NODES, PODS
from joulie.cluster.watch.log import WatchLog
from tests.cluster.watching import run
from tests.operator.log_lines import logged

FAILED, BACK = "watch failed; retrying", "all watches are back"


def test_watches_that_notice_one_after_the_other_are_one_outage() -> None:
    async def story() -> None:
        log, errors = WatchLog("operator", settled_s=0.3), list[str]()
        log.on_error = errors.append
        with logged() as lines:
            for resource in (NODES, PODS, NODE_TWINS):
                log.failed(resource, "no answer", 0.0, 0)
                log.contact(resource)
                await asyncio.sleep(0.01)
            assert [line.message for line in lines.lines] == [FAILED]  # the next might still notice
            assert lines.lines[0].fields == {"kind": "Node", "reason": "no answer"}
            await asyncio.sleep(0.5)
            assert [line.message for line in lines.lines] == [FAILED, BACK]
        assert errors == ["Node", "Pod", "NodeTwin"]

    run(story())


def test_an_outage_lasts_until_the_last_watch_is_back_and_the_next_is_told_again() -> None:
    async def story() -> None:
        log = WatchLog("operator", settled_s=0.0)
        with logged() as lines:
            log.failed(NODES, "no answer", 0.0, 0)
            log.failed(PODS, "no answer", 0.0, 0)
            log.contact(NODES)
            await asyncio.sleep(0.05)
            assert lines.saying(BACK) == []
            log.contact(PODS)
            await asyncio.sleep(0.05)
            log.failed(PODS, "cut off", 0.0, 0)
            assert [line.message for line in lines.lines] == [FAILED, BACK, FAILED]

    run(story())


def test_what_an_outage_turns_out_to_be_is_told_once_for_each_kind_if_it_lasts() -> None:
    """A server that starts may refuse for a moment; one without the kind refuses for ever."""

    async def story() -> None:
        log = WatchLog("operator", settled_s=0.0)
        with logged() as lines:
            log.failed(NODES, "no answer", 0.0, 0)
            log.failed(PODS, "forbidden", 0.0, 403)
            for _ in range(20):
                log.failed(NODE_TWINS, "no such kind", 0.0, 404)
            said = [(line.fields["kind"], line.fields["reason"]) for line in lines.lines]
            assert said == [("Node", "no answer"), ("NodeTwin", "no such kind")]
            for resource in (NODES, PODS, NODE_TWINS):
                log.contact(resource)
            await asyncio.sleep(0.05)
            log.failed(NODE_TWINS, "no such kind", 0.0, 404)
            assert [line.message for line in lines.lines] == [FAILED, FAILED, BACK, FAILED]

    run(story())
