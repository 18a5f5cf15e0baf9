package clock

import (
	"net/http"
	"sync"
	"time"
)

// Dates estimates the clock of an HTTP server from the Date of its answers. A Date has whole seconds, and was written between request and
// answer: it bounds the offset to a second and a round trip. Several answers together bound it closer. Its zero value is ready for use by
// several goroutines.
type Dates struct {
	mu          sync.Mutex
	known       bool
	least, most time.Duration
}

// Add takes the Date of an answer; without one it changes nothing. A Date that contradicts those before is of a clock that was set.
func (d *Dates) Add(sent, received time.Time, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	least, most := date.Sub(received), date.Add(time.Second).Sub(sent)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && max(least, d.least) <= min(most, d.most) {
		least, most = max(least, d.least), min(most, d.most)
	}
	d.known, d.least, d.most = true, least, most
}

// Ahead is how far the clock of the server is ahead of this machine's, within about half a second; 0 before the first answer.
func (d *Dates) Ahead() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.least + (d.most-d.least)/2
}
