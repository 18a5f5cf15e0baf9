package vcenter

import (
	"context"
	"errors"
	"html"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/wait"
)

// A call that vCenter is too busy for is repeated after growing pauses, for at most busyMax.
const (
	busyPause    = 500 * time.Millisecond
	busyPauseMax = 10 * time.Second
	busyMax      = 2 * time.Minute
	reachMax     = 10 * time.Second // of the first call
)

// link makes calls. A session that expired is renewed by one login for all callers.
type link struct {
	wire     *soap.Client
	user     *url.Userinfo
	host     string
	sessions *session.Manager // makes its calls without logging in again
	names    sync.Map         // of objects, for messages

	mu      sync.Mutex
	logging chan struct{} // closed when the login that is under way ends; nil: none is
	round   int           // logins so far
	err     error         // of the last one
}

// renewals is how often one call gets a new session: an administrator may end that one too.
const renewals = 3

// RoundTrip makes one call. After an expired session it logs in and repeats the call.
func (l *link) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	for n := 0; ; n++ {
		l.mu.Lock()
		round := l.round
		l.mu.Unlock()
		err := repeating{l}.RoundTrip(ctx, req, res)
		if err == nil && unseen(res) {
			err = soap.WrapVimFault(&types.NotAuthenticated{})
		}
		if n == renewals || !fault.Is(err, &types.NotAuthenticated{}) {
			return err
		}
		if err := l.login(ctx, round); err != nil {
			return err
		}
		clearBody(res)
	}
}

// unseen reports whether an answer leaves out properties because the session ended: reading properties does not fail then.
func unseen(res soap.HasFault) bool {
	var objects []types.ObjectContent
	switch b := res.(type) {
	case *methods.RetrievePropertiesExBody:
		if b.Res != nil && b.Res.Returnval != nil {
			objects = b.Res.Returnval.Objects
		}
	case *methods.ContinueRetrievePropertiesExBody:
		if b.Res != nil {
			objects = b.Res.Returnval.Objects
		}
	}
	for _, o := range objects {
		for _, m := range o.MissingSet {
			if fault.Is(m.Fault.Fault, &types.NotAuthenticated{}) {
				return true
			}
		}
	}
	return false
}

// login logs in, unless another caller did so since the caller's round.
func (l *link) login(ctx context.Context, round int) error {
	for {
		l.mu.Lock()
		if l.round > round {
			defer l.mu.Unlock()
			return l.err
		}
		running := l.logging
		if running == nil {
			running = make(chan struct{})
			l.logging = running
			l.mu.Unlock()
			err := l.sessions.Login(ctx, l.user)
			l.mu.Lock()
			if ctx.Err() == nil || err == nil { // a caller that gave up says nothing of the login itself
				l.round, l.err = l.round+1, err
			}
			l.logging = nil
			close(running)
			l.mu.Unlock()
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		l.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *link) logout(ctx context.Context) {
	if l.sessions != nil {
		_ = l.sessions.Logout(ctx) // the session also expires by itself
	}
}

func (l *link) hangUp() { l.wire.DefaultTransport().CloseIdleConnections() }

// scrub removes the password from a text of the vCenter, or of a proxy before it, which may repeat what it received.
func (l *link) scrub(text string) string {
	password, _ := l.user.Password()
	for _, form := range []string{password, html.EscapeString(password)} {
		if len(form) >= passwordMin {
			text = strings.ReplaceAll(text, form, "…")
		}
	}
	return text
}

// passwordMin: a shorter one would be found in any text.
const passwordMin = 4

func (l *link) name() string { return l.user.Username() }

// repeating makes one call and repeats it while vCenter is too busy to take it.
type repeating struct{ *link }

func (r repeating) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	pause := busyPause
	for until := time.Now().Add(r.patience()); ; {
		err := r.wire.RoundTrip(ctx, req, res)
		if err == nil || ctx.Err() != nil || !again(err, changes(req)) || time.Now().Add(pause).After(until) {
			return err
		}
		if waited := wait.For(ctx, pause); waited != nil {
			return waited
		}
		pause = min(2*pause, busyPauseMax)
		clearBody(res)
	}
}

// patience is how long a call is repeated. A vCenter that was never reached is more likely a wrong address than one that restarts.
func (l *link) patience() time.Duration {
	if l.sessions == nil {
		return reachMax
	}
	return busyMax
}

// clearBody forgets what an earlier attempt answered.
func clearBody(res soap.HasFault) {
	v := reflect.ValueOf(res).Elem()
	v.Set(reflect.Zero(v.Type()))
}

// changes reports whether a call may have changed something although no answer came.
func changes(req soap.HasFault) bool {
	name := strings.TrimSuffix(reflect.TypeOf(req).Elem().Name(), "Body")
	for _, read := range []string{"Retrieve", "Continue", "Query", "Find", "CurrentTime", "HasPrivilege", "FetchUserPrivilege", "Read"} {
		if strings.HasPrefix(name, read) {
			return false
		}
	}
	return true
}

// again reports whether a call may be repeated: vCenter did not take it, or it changes nothing.
func again(err error, changing bool) bool {
	if status := statusOf(err); status != 0 {
		return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusBadGateway && !changing
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return errors.Is(err, syscall.ECONNREFUSED) // it restarts, or it is gone: busyMax decides
	}
	var timeout net.Error
	return !changing && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || isEOF(err) || errors.As(err, &timeout) && timeout.Timeout())
}

func isEOF(err error) bool { return err != nil && strings.HasSuffix(err.Error(), "EOF") }

// statusOf returns the status of HTTP in an error of govmomi, which does not export it; 0: it is another error.
func statusOf(err error) int {
	var wrapped *url.Error
	if !errors.As(err, &wrapped) || wrapped.Err == nil {
		return 0
	}
	number, _, _ := strings.Cut(wrapped.Err.Error(), " ") // "503 Service Unavailable"
	status, err := strconv.Atoi(number)
	if err != nil || status < 400 || status > 599 {
		return 0
	}
	return status
}
