"""The ordinary life of a server under its supervisor."""

import signal


def test_ready_means_generated_tokens_and_term_stops_in_order(harness):
    up = harness.up()
    record = harness.reach("ready")
    assert record.ready
    assert record.probe.accept_length == 8
    assert record.server.session == record.server.pid
    assert ("draft_attention_backend", "triton") in record.facts
    harness.stop()
    assert harness.ended(up) == 0
    assert harness.phase() == "stopped"
    assert harness.phases() == ["starting", "loading", "ready", "draining", "stopped"]
    assert "Gracefully exiting" in harness.log()
    harness.nothing_left()


def test_the_steps_of_the_start_are_told(harness):
    harness.up("--step-s", "0.3")
    seen = []
    while harness.phase() != "ready":
        record = harness.record()
        step = record and record.step and record.step.value
        if step and step not in seen:
            seen.append(step)
    assert seen[:1] == ["resolve"]
    assert {"load_target", "load_draft", "capture"} <= set(seen)
    assert seen == sorted(
        seen, key=["resolve", "load_target", "load_draft", "allocate", "capture", "warm_up"].index
    )
    harness.stop(number=signal.SIGINT)
    assert harness.ended() == 0
