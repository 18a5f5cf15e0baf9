package faulttest

import (
	"net/http"
	"net/http/httptest"
	"sync"
)

// gate passes the requests to the API of a platform and counts the changes.
type gate struct {
	change func(*http.Request) string

	mu sync.Mutex
	// fault is what happens to a request: number is that of the change, from 1, and 0 for a request that changes nothing. nil: nothing.
	fault   func(c call)
	changes int
}

// call is a request on its way.
type call struct {
	w        http.ResponseWriter
	r        *http.Request
	platform http.Handler
	change   string // what it changes, or ""
	number   int
}

func (g *gate) before(platform http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{w: w, r: r, platform: platform, change: g.change(r)}
		g.mu.Lock()
		fault := g.fault
		if c.change != "" {
			g.changes++
			c.number = g.changes
		}
		g.mu.Unlock()
		if fault == nil {
			fault = call.pass
		}
		fault(c)
	})
}

// set replaces the fault, and counts from 1 again.
func (g *gate) set(fault func(call)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.changes = fault, 0
}

// count is how many changes came.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// pass lets the platform answer.
func (c call) pass() { c.platform.ServeHTTP(c.w, c.r) }

// unanswered lets the platform do it, and its answer is lost.
func (c call) unanswered() {
	c.platform.ServeHTTP(httptest.NewRecorder(), c.r)
	c.lost()
}

// lost ends the connection without an answer, and the platform learns nothing.
func (c call) lost() { panic(http.ErrAbortHandler) }
