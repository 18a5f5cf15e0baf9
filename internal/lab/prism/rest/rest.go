// Package rest is what the versions of Prism's API share: authentication and sessions, idempotency, faults by script, and the subset of
// OData that clients use. It knows no entities.
//
//	request ──▶ Gate: fault? ──▶ who is it? ──▶ seen before? ──▶ handler of v4, v3, v2 ──▶ Answer, Fail
package rest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// Bounds of requests.
const (
	bodyBytesMax   = 4 << 20
	answersMax     = 4096 // remembered for requests that come again
	sessionsMax    = 1024
	sessionCookie  = "NTNX_IGW_SESSION"
	apiKeyHeader   = "X-ntnx-api-key"
	requestHeader  = "NTNX-Request-Id"
	basicChallenge = `Basic realm="Prism"`
)

// Credentials are what a client may show.
type Credentials struct{ User, Password, APIKey string }

// Gate is before all handlers. Its methods may be called at the same time.
type Gate struct {
	credentials Credentials
	faults      Faults
	handler     http.Handler
	fail        func(w http.ResponseWriter, r *http.Request, status int, message string)
	sessionMax  time.Duration

	mu       sync.Mutex
	sessions map[string]time.Time // cookie → end
	answers  map[string]*answer   // by request id
	order    []string             // of answers
	requests []string             // "METHOD path", newest last
}

// Faults decides what goes wrong with a request before it is carried out, and after.
type Faults interface {
	Request(r *http.Request, body []byte) Trouble
}

// Trouble is what goes wrong with one request.
type Trouble struct {
	Delay      time.Duration
	Status     int // answered instead; 0: the request is carried out
	RetryAfter time.Duration
	Message    string
	Drop       bool // the request is carried out, and the connection ends without the answer
	Expire     bool // all sessions end before it
}

// GateOptions configures a Gate.
type GateOptions struct {
	Credentials Credentials
	SessionMax  time.Duration // 0: 15 minutes
	Faults      Faults        // nil: none
	// Fail writes an error in the shape of the API that a request is for.
	Fail func(w http.ResponseWriter, r *http.Request, status int, message string)
}

// NewGate returns a Gate before a handler.
func NewGate(h http.Handler, o GateOptions) *Gate {
	g := &Gate{
		credentials: o.Credentials, faults: o.Faults, handler: h, fail: o.Fail, sessionMax: o.SessionMax,
		sessions: map[string]time.Time{}, answers: map[string]*answer{},
	}
	if g.sessionMax == 0 {
		g.sessionMax = 15 * time.Minute
	}
	return g
}

// requestsMax bounds the log of requests.
const requestsMax = 20000

// Requests are the requests so far as "METHOD path", oldest first.
func (g *Gate) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.requests...)
}

// ExpireSessions ends all sessions: clients have to log in again.
func (g *Gate) ExpireSessions() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.sessions)
}

func (g *Gate) log(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.requests) >= requestsMax {
		g.requests = g.requests[1:]
	}
	g.requests = append(g.requests, r.Method+" "+r.URL.Path)
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.log(r)
	body, stream, ok := g.readBody(w, r)
	if !ok {
		return
	}
	var trouble Trouble
	if g.faults != nil {
		trouble = g.faults.Request(r, body)
	}
	if trouble.Expire {
		g.ExpireSessions()
	}
	if trouble.Delay > 0 {
		t := time.NewTimer(trouble.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
	if trouble.Status != 0 {
		if trouble.RetryAfter > 0 {
			w.Header().Set("Retry-After", seconds(trouble.RetryAfter))
		}
		g.fail(w, r, trouble.Status, trouble.Message)
		return
	}
	if !g.authenticate(w, r) {
		return
	}
	if stream {
		g.handler.ServeHTTP(w, r)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.answer(w, r, body, trouble.Drop)
}

func seconds(d time.Duration) string {
	text, _ := json.Marshal(int64((d + time.Second - 1) / time.Second))
	return string(text)
}

// readBody reads a body, except contents of images, which handlers stream.
func (g *Gate) readBody(w http.ResponseWriter, r *http.Request) (body []byte, stream, ok bool) {
	if r.Method == http.MethodPut && (strings.HasSuffix(r.URL.Path, "/file") || strings.Contains(r.URL.Path, "/objects/")) {
		return nil, true, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		g.fail(w, r, http.StatusRequestEntityTooLarge, "the body is too long, or was not sent completely")
		return nil, false, false
	}
	return body, false, true
}

// authenticate accepts an API key, a session, or a user with a password, who gets a session.
func (g *Gate) authenticate(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodOptions {
		return true
	}
	if key := r.Header.Get(apiKeyHeader); key != "" {
		if g.credentials.APIKey != "" && same(key, g.credentials.APIKey) {
			return true
		}
		g.fail(w, r, http.StatusUnauthorized, "the API key is not valid")
		return false
	}
	if user, password, ok := r.BasicAuth(); ok {
		if same(user, g.credentials.User) && same(password, g.credentials.Password) {
			g.begin(w)
			return true
		}
	} else if c, err := r.Cookie(sessionCookie); err == nil && g.known(c.Value) {
		return true
	}
	w.Header().Set("WWW-Authenticate", basicChallenge)
	g.fail(w, r, http.StatusUnauthorized, "authentication is required")
	return false
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// begin starts a session.
func (g *Gate) begin(w http.ResponseWriter) {
	var token [32]byte
	_, _ = rand.Read(token[:])
	text := hex.EncodeToString(token[:])
	g.mu.Lock()
	if len(g.sessions) >= sessionsMax {
		clear(g.sessions)
	}
	g.sessions[text] = time.Now().Add(g.sessionMax)
	g.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: text, Path: "/", Secure: true, HttpOnly: true})
}

func (g *Gate) known(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, ok := g.sessions[token]
	if ok && time.Now().After(end) {
		delete(g.sessions, token)
		return false
	}
	return ok
}

// answer is what a request got, for when it comes again.
type answer struct {
	digest [32]byte
	done   chan struct{}
	kept   recorder
}

// answer carries a request out, or repeats the answer to one with the same id.
func (g *Gate) answer(w http.ResponseWriter, r *http.Request, body []byte, drop bool) {
	id := r.Header.Get(requestHeader)
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions || !strings.Contains(r.URL.Path, "/v4.") {
		id = ""
	} else if id == "" {
		g.fail(w, r, http.StatusBadRequest, "header NTNX-Request-Id is required")
		return
	}
	var own *answer
	if id != "" {
		digest := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + "\n" + string(body)))
		before, first := g.remember(id, digest)
		if !first {
			<-before.done
			if before.digest != digest {
				g.fail(w, r, http.StatusConflict, "NTNX-Request-Id was used for another request")
				return
			}
			before.kept.send(w)
			return
		}
		own = before
	}
	rec := g.record(r, own)
	if own != nil && rec.status >= http.StatusInternalServerError {
		g.forget(id)
	}
	if drop {
		panic(http.ErrAbortHandler)
	}
	rec.send(w)
}

// record carries a request out, and keeps its answer for those that come again.
func (g *Gate) record(r *http.Request, own *answer) recorder {
	rec := recorder{header: http.Header{}, status: http.StatusOK}
	if own != nil {
		defer func() {
			own.kept = rec
			close(own.done)
		}()
	}
	g.handler.ServeHTTP(&rec, r)
	return rec
}

func (g *Gate) remember(id string, digest [32]byte) (a *answer, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.answers[id]; a != nil {
		return a, false
	}
	a = &answer{digest: digest, done: make(chan struct{})}
	g.answers[id] = a
	if g.order = append(g.order, id); len(g.order) > answersMax {
		delete(g.answers, g.order[0])
		g.order = g.order[1:]
	}
	return a, true
}

func (g *Gate) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.answers, id)
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *recorder) send(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body)
}

// Answer writes JSON.
func Answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

// Decode reads the body of a request; unknown fields are ignored, as Prism does.
func Decode(r *http.Request, into any) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}
