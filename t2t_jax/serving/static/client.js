// Calls the server. All addresses are relative, so that the page can be mounted anywhere.

const KEY = "t2t_jax.key";

export class ServerError extends Error {
  constructor(message, status, seconds) {
    super(message);
    this.status = status;
    this.seconds = seconds; // after which to try again
  }
}

export const apiKey = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
};

export async function getJson(path) {
  const response = await fetch(path);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

// Calls onSentence for each line of the response; returns its last line.
export async function translate(parameters, { signal, onSentence }) {
  const headers = { "Content-Type": "application/json" };
  if (apiKey.get()) headers.Authorization = `Bearer ${apiKey.get()}`;
  const response = await fetch("translate/stream", {
    method: "POST",
    headers,
    body: JSON.stringify(parameters),
    signal,
  });
  if (!response.ok) throw await problemOf(response);
  let last = {};
  for await (const line of linesOf(response.body)) {
    last = JSON.parse(line);
    if (last.error) throw new ServerError(last.error, last.status, 0);
    if (!last.done) onSentence(last);
  }
  if (!last.done) throw new ServerError("The connection was lost.", 0, 0);
  return last;
}

async function problemOf(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? 0);
  let message = `The server answered with status ${response.status}.`;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // Not JSON: a proxy's own page.
  }
  return new ServerError(message, response.status, seconds);
}

async function* linesOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value ?? new Uint8Array(), { stream: !done });
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) yield line;
    if (done) return;
  }
}
