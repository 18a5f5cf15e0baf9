package api

import (
	"net/http"
	"time"
)

// Ahead is how far the clock of the API server is ahead of this machine's, within about half a second; 0 before the first answer.
func (c *Client) Ahead() time.Duration { return c.clock.Ahead() }

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
	o.client.clock.Add(sent, time.Now(), answer.Header)
	return answer, nil
}
