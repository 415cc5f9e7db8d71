/** An event as docs/events.md describes it. */
export type Event = Record<string, unknown> & { type: string };

/** A stream that nobody reads doesn't fill the memory. */
const MAX_WAITING = 100_000;

/** Events from when the stream was made until toolq is closed. */
export class EventStream implements AsyncIterableIterator<Event> {
  /** How many events were left out, because 100,000 others waited to be read. */
  dropped = 0;
  #waiting: Event[] = [];
  #next = 0;
  #wakers: (() => void)[] = [];
  #ended = false;

  push(event: Event): void {
    if (this.#waiting.length - this.#next < MAX_WAITING) this.#waiting.push(event);
    else this.dropped += 1;
    this.#wakers.shift()?.();
  }

  close(): void {
    this.#ended = true;
    for (const wake of this.#wakers.splice(0)) wake();
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    for (;;) {
      const value = this.#waiting[this.#next];
      if (value !== undefined) {
        this.#next += 1;
        if (this.#next >= 1024) {
          this.#waiting = this.#waiting.slice(this.#next);
          this.#next = 0;
        }
        return { done: false, value };
      }
      if (this.#ended) return { done: true, value: undefined };
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  return(): Promise<IteratorResult<Event, undefined>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  get isClosed(): boolean {
    return this.#ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
