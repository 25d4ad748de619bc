"""The model cards' usage example works with the real OpenAI client."""

from __future__ import annotations

import openai
import pytest

from .running import QUESTION


@pytest.fixture
def client(block_8):
    with openai.OpenAI(
        base_url=f"http://localhost:{block_8.port}/v1", api_key="EMPTY", max_retries=0
    ) as client:
        yield client


def ask(client, **more: object):
    return client.chat.completions.create(
        model=client.models.list().data[0].id,
        messages=[{"role": "user", "content": QUESTION}],
        max_tokens=4096,
        temperature=0,
        **more,
    )


def test_the_cards_example(client):
    answer = ask(client)
    assert answer.choices[0].message.content.endswith("The answer is 19.\n#### 19")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == 52
    assert answer.usage.total_tokens == 83


def test_the_cards_example_streamed(client):
    text, usage, chunks = "", None, 0
    for chunk in ask(client, stream=True, stream_options={"include_usage": True}):
        chunks += 1
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    assert text == ask(client).choices[0].message.content
    assert usage.completion_tokens == 52
    assert chunks == 1 + 1 + 8 + 1, "the role, the prefill's token, each of 8 verify steps, the usage"


def test_log_probabilities_and_several_answers(client):
    answer = ask(client, logprobs=True, top_logprobs=2, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]
    first = answer.choices[0].logprobs.content
    assert "".join(token.token for token in first).startswith(answer.choices[0].message.content)
    assert all(len(token.top_logprobs) == 2 for token in first)
    assert all(token.top_logprobs[0].logprob == token.logprob <= 0 for token in first), (
        "greedy takes the best"
    )


def test_completions(client):
    answer = client.completions.create(
        model="any", prompt=["Ana has", "Ben buys"], max_tokens=5, temperature=0
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage.completion_tokens == 10
    assert all(choice.finish_reason == "length" for choice in answer.choices)


def test_errors_are_the_clients_own_exceptions(client):
    with pytest.raises(openai.BadRequestError, match="longer than the model's context length"):
        client.chat.completions.create(model="any", messages=[{"role": "user", "content": "word " * 9000}])
    with pytest.raises(openai.BadRequestError, match="top_p must be in"):
        ask(client, top_p=2)
