package prism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/trust"
)

const secret = "Tr0ub4dor&3"

// service is a Prism that answers as the test says.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	seen    []*http.Request
	answers func(n int, w http.ResponseWriter, r *http.Request)
}

// serve starts a Prism whose n-th request, not counting those for versions, is answered by answers.
func serve(t *testing.T, answers func(n int, w http.ResponseWriter, r *http.Request)) *service {
	t.Helper()
	s := &service{answers: answers}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			fmt.Fprint(w, `{"data":"v4.1"}`)
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, r)
		n := len(s.seen)
		s.mu.Unlock()
		s.answers(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) client(t *testing.T, o prism.Options) *prism.Client {
	t.Helper()
	if o.APIKey == "" {
		o.User, o.Password = "bragg", secret
	}
	verified, err := trust.Service{Name: "Prism", Unverified: true}.ClientConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoint, o.TLS, o.Quicken = s.URL, verified, 1000
	c, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func get(ctx context.Context, c *prism.Client) error {
	var out map[string]any
	_, err := c.Get(ctx, "vmm", "ahv/config/vms/1", nil, &out)
	return err
}

// A request is repeated with its id where Prism is busy or the answer is lost, and not where it is refused.
func TestRepeats(t *testing.T) {
	for _, status := range []int{408, 429, 502, 503, 504, 0} {
		s := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			switch {
			case n == 3:
				fmt.Fprint(w, `{"data":{}}`)
			case status == 0:
				panic(http.ErrAbortHandler) // no answer
			default:
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)
			}
		})
		s.Config.ErrorLog = nil
		if err := get(t.Context(), s.client(t, prism.Options{})); err != nil {
			t.Errorf("status %d: %v", status, err)
		}
		if len(s.seen) != 3 || s.seen[0].Header.Get("NTNX-Request-Id") == "" ||
			s.seen[0].Header.Get("NTNX-Request-Id") != s.seen[2].Header.Get("NTNX-Request-Id") {
			t.Errorf("status %d: %d requests, or not the same id", status, len(s.seen))
		}
		if path := s.seen[0].URL.Path; path != "/api/vmm/v4.1/ahv/config/vms/1" {
			t.Errorf("requested %s", path)
		}
	}
	for _, status := range []int{400, 404, 409, 422, 500} {
		s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"data":{"error":[{"message":"the sky is falling","code":"VMM-30100"}]}}`)
		})
		err := get(t.Context(), s.client(t, prism.Options{}))
		if !prism.IsStatus(err, status) || !strings.Contains(err.Error(), "the sky is falling") || len(s.seen) != 1 {
			t.Errorf("status %d: %v after %d requests", status, err, len(s.seen))
		}
	}
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if err := get(t.Context(), s.client(t, prism.Options{})); err == nil || len(s.seen) > 10 {
		t.Errorf("%v after %d requests", err, len(s.seen))
	}
}

// The password is sent once per session; an expired session is renewed once; a wrong password is tried once.
func TestSessions(t *testing.T) {
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("NTNX_IGW_SESSION")
		_, password, basic := r.BasicAuth()
		switch {
		case n == 4 || err != nil && !basic: // the session expires with the fourth request
			w.WriteHeader(http.StatusUnauthorized)
		case basic && password == secret:
			http.SetCookie(w, &http.Cookie{Name: "NTNX_IGW_SESSION", Value: fmt.Sprint("s", n), Secure: true, HttpOnly: true})
			fmt.Fprint(w, `{"data":{}}`)
		case err == nil && strings.HasPrefix(cookie.Value, "s"):
			fmt.Fprint(w, `{"data":{}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	c := s.client(t, prism.Options{})
	for range 5 {
		if err := get(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	var logins int
	for _, r := range s.seen {
		if _, _, ok := r.BasicAuth(); ok {
			logins++
		}
	}
	if logins != 2 || len(s.seen) != 6 {
		t.Errorf("%d logins in %d requests", logins, len(s.seen))
	}
	refusing := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":"bad %s for %s"}`, secret, r.Header.Get("Authorization"))
	})
	err := get(t.Context(), refusing.client(t, prism.Options{}))
	if diag.ExitCode(err) != diag.ExitUnavailable || len(refusing.seen) != 1 {
		t.Errorf("%v after %d requests", err, len(refusing.seen))
	}
	basic := strings.TrimPrefix(refusing.seen[0].Header.Get("Authorization"), "Basic ")
	if text := diag.Sentence(err); strings.Contains(text, secret) || strings.Contains(text, basic) {
		t.Errorf("the error shows a secret: %s", text)
	}
	keyed := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{}}`) })
	if err := get(t.Context(), keyed.client(t, prism.Options{APIKey: "key-1"})); err != nil {
		t.Fatal(err)
	}
	if h := keyed.seen[0].Header; h.Get("X-ntnx-api-key") != "key-1" || h.Get("Authorization") != "" {
		t.Errorf("headers %v", h)
	}
}

// A change reads the object again after a conflict.
func TestConflicts(t *testing.T) {
	version := 1
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "tasks"):
			fmt.Fprint(w, `{"data":{"extId":"t","status":"SUCCEEDED"}}`)
		case r.Method == http.MethodGet:
			w.Header().Set("ETag", fmt.Sprint("v", version))
			fmt.Fprintf(w, `{"data":{"name":"a","sizeBytes":9007199254740993,"version":%d}}`, version)
			if n == 1 {
				version = 2 // another caller is faster
			}
		case r.Header.Get("If-Match") != fmt.Sprint("v", version):
			w.WriteHeader(http.StatusPreconditionFailed)
		default:
			var body struct{ SizeBytes json.Number }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.SizeBytes != "9007199254740993" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"data":{"extId":"ZXJnb24=:1","$objectType":"prism.v4.config.TaskReference"}}`)
		}
	})
	edits := 0
	_, err := s.client(t, prism.Options{}).Change(t.Context(), "vmm", "ahv/config/vms/1", func(o json.RawMessage) (prism.Request, error) {
		edits++
		body, err := prism.Merge(o, map[string]any{"name": "b"})
		return prism.Request{Method: http.MethodPut, Body: body}, err
	})
	if err != nil || edits != 2 {
		t.Errorf("%d edits: %v", edits, err)
	}
	s = serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":{}}`)
			return
		}
		w.WriteHeader(http.StatusPreconditionFailed)
	})
	_, err = s.client(t, prism.Options{}).Change(t.Context(), "vmm", "x", func(json.RawMessage) (prism.Request, error) {
		return prism.Request{Method: http.MethodPut}, nil
	})
	if err == nil || len(s.seen) > 40 {
		t.Errorf("%v after %d requests", err, len(s.seen))
	}
}

func TestTasks(t *testing.T) {
	for last, want := range map[string]string{
		"SUCCEEDED": "", "FAILED": "no space left", "CANCELED": "CANCELED", "lost": prism.ErrTaskLost.Error(),
	} {
		s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{"data":{"extId":"ZXJnb24=:1","$objectType":"prism.v4.config.TaskReference"}}`)
			case r.URL.Path != "/api/prism/v4.1/config/tasks/ZXJnb24=:1":
				w.WriteHeader(http.StatusBadRequest)
			case n < 5:
				fmt.Fprint(w, `{"data":{"status":"RUNNING","progressPercentage":20}}`)
			case last == "lost":
				w.WriteHeader(http.StatusNotFound)
			default:
				fmt.Fprintf(w, `{"data":{"status":%q,"errorMessages":[{"message":"no space left on %s"}],
					"entitiesAffected":[{"extId":"vm-1","rel":"vmm:ahv:config:vm"}]}}`, last, secret)
			}
		})
		task, err := s.client(t, prism.Options{}).Create(t.Context(), "vmm", "ahv/config/vms", map[string]any{}, uuid.New())
		switch {
		case want == "" && (err != nil || task.Of("vmm:ahv:config:vm") != "vm-1"):
			t.Errorf("%s: %+v, %v", last, task, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret)):
			t.Errorf("%s: %v, want %q", last, err, want)
		case last == "lost" && !errors.Is(err, prism.ErrTaskLost):
			t.Errorf("%v", err)
		}
	}
	endless := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"status":"RUNNING"}}`) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := endless.client(t, prism.Options{}).Await(ctx, "1", "nothing"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled wait: %v", err)
	}
}

func TestPages(t *testing.T) {
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("$page") != fmt.Sprint(n-1) || r.URL.Query().Get("$filter") != "name eq 'it''s'" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		items := slices.Repeat([]string{`{"name":"a"}`}, map[bool]int{true: 100, false: 7}[n < 3])
		fmt.Fprintf(w, `{"data":[%s],"metadata":{"totalAvailableResults":207}}`, strings.Join(items, ","))
	})
	all, err := prism.List[struct{ Name string }](t.Context(), s.client(t, prism.Options{}), "vmm", "x", prism.Filter("name eq %s", "it's"))
	if err != nil || len(all) != 207 {
		t.Errorf("%d objects: %v", len(all), err)
	}
	endless := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(slices.Repeat([]string{"{}"}, 100), ","))
	})
	if _, err := prism.List[struct{}](t.Context(), endless.client(t, prism.Options{}), "vmm", "x", nil); err == nil || len(endless.seen) > 1000 {
		t.Errorf("%v after %d pages", err, len(endless.seen))
	}
}

func TestVersions(t *testing.T) {
	for answer, want := range map[string]string{
		`{"data":"v4.0"}`: "v4.0", `{"data":"v4.9"}`: "v4.3", `{"data":"v4.0.b1"}`: "", `{"data":"v3"}`: "", `<html>`: "", "404": "",
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodOptions:
				fmt.Fprint(w, `{"data":{}}`)
			case answer == "404":
				w.WriteHeader(http.StatusNotFound)
			default:
				fmt.Fprint(w, answer)
			}
		}))
		t.Cleanup(server.Close)
		c := (&service{Server: server}).client(t, prism.Options{})
		err := get(t.Context(), c)
		if c.Versions()["vmm"] != want || (want == "") != (err != nil) {
			t.Errorf("%s: version %q, %v", answer, c.Versions()["vmm"], err)
		}
	}
}

// A certificate that is not trusted ends the request at once, and the password is not sent.
func TestCertificates(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{}}`) })
	verified, err := trust.Service{Name: "Prism"}.ClientConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := prism.New(prism.Options{Endpoint: s.URL, User: "bragg", Password: secret, TLS: verified, Quicken: 1000})
	if err != nil {
		t.Fatal(err)
	}
	err = get(t.Context(), c)
	if text := diag.Sentence(err); !strings.Contains(text, "fingerprint") || strings.Contains(text, secret) || len(s.seen) > 0 {
		t.Errorf("%s after %d requests", text, len(s.seen))
	}
	for _, bad := range []string{"", "http://pc", "https://bragg:" + secret + "@pc", "pc/console", "https://pc?x=1"} {
		if _, err := prism.New(prism.Options{Endpoint: bad}); err == nil || strings.Contains(diag.Sentence(err), secret) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
	}
}

// Redirects are not followed: the password is for this host.
func TestRedirects(t *testing.T) {
	reached := false
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	if err := get(t.Context(), s.client(t, prism.Options{})); err == nil || reached {
		t.Errorf("%v, followed: %t", err, reached)
	}
}
