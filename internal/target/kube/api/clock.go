package api

import (
	"net/http"
	"sync"
	"time"
)

// serverClock is how far the clock of the API server is ahead of this machine's. The Date of an answer has whole seconds, and was written
// between request and answer: it bounds the offset to a second and a round trip. Several answers together bound it closer.
type serverClock struct {
	mu          sync.Mutex
	known       bool
	least, most time.Duration
}

// note takes the Date of an answer. One that contradicts those before is of a clock that was set.
func (s *serverClock) note(sent, received, date time.Time) {
	least, most := date.Sub(received), date.Add(time.Second).Sub(sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && max(least, s.least) <= min(most, s.most) {
		least, most = max(least, s.least), min(most, s.most)
	}
	s.known, s.least, s.most = true, least, most
}

func (s *serverClock) ahead() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.least + (s.most-s.least)/2
}

// Ahead is how far the clock of the API server is ahead of this machine's, within about half a second; 0 before the first answer.
func (c *Client) Ahead() time.Duration { return c.clock.ahead() }

// observed counts requests, and reads the server's clock from their answers.
type observed struct {
	next   http.RoundTripper
	client *Client
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	o.client.calls.Add(1)
	sent := time.Now()
	answer, err := o.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		o.client.clock.note(sent, time.Now(), date)
	}
	return answer, nil
}
