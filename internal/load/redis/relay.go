package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
)

// relay passes connections of a socket in the room on to an endpoint. Clients of Redis take address and password as arguments, which all users
// of a machine can read; so they get neither, and the relay logs in for them. Its cost is measured and reported.
//
//	redis-benchmark ──socket──▶ relay ──TCP or TLS, AUTH, SELECT──▶ endpoint
type relay struct {
	endpoint program.Endpoint
	tls      *tls.Config // nil: plain TCP
	listener net.Listener
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu   sync.Mutex
	last error // of a connection to the endpoint
}

// Bounds of the relay.
const (
	dialMost    = 15 * time.Second
	answerBytes = 4 << 10 // of one line
	portDefault = "6379"
)

// newRelay reads the settings of an endpoint. It connects nothing.
func newRelay(e program.Endpoint) (*relay, error) {
	r := &relay{endpoint: e}
	invalid := func(format string, args ...any) (*relay, error) {
		return nil, &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable, Message: "settings of the endpoint: " + fmt.Sprintf(format, args...),
			Hint: optionsHint}
	}
	if n, err := strconv.Atoi(cmp.Or(e["dbname"], "0")); err != nil || n < 0 || n > 1<<20 {
		return invalid("dbname is not the number of a database")
	}
	switch mode := cmp.Or(e["sslmode"], "disable"); mode {
	case "disable":
		if e["sslrootcert"] != "" {
			return invalid("sslrootcert needs sslmode=verify-full")
		}
	case "verify-full":
		r.tls = &tls.Config{ServerName: e["host"], MinVersion: tls.VersionTLS12}
		if e["sslrootcert"] != "" {
			text, err := e.Certificates()
			if r.tls.RootCAs = x509.NewCertPool(); err != nil || !r.tls.RootCAs.AppendCertsFromPEM(text) {
				return invalid("sslrootcert is not a file with certificates")
			}
		}
	default:
		return invalid("sslmode is not disable or verify-full")
	}
	return r, nil
}

// String says how connections are made, without settings.
func (r *relay) String() string {
	if r.tls == nil {
		return "TCP"
	}
	return "TLS"
}

// dial connects to the endpoint and logs in.
func (r *relay) dial(ctx context.Context) (conn net.Conn, err error) {
	e := r.endpoint
	address := net.JoinHostPort(e["host"], cmp.Or(e["port"], portDefault))
	ctx, cancel := context.WithTimeout(ctx, dialMost)
	defer cancel()
	if r.tls == nil {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&tls.Dialer{Config: r.tls}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, e.ConcealError(err)
	}
	_ = conn.SetDeadline(time.Now().Add(dialMost))
	var words [][]string
	if e["password"] != "" {
		words = append(words, slices.DeleteFunc([]string{"AUTH", e["user"], e["password"]}, func(s string) bool { return s == "" }))
	}
	if e["dbname"] != "" {
		words = append(words, []string{"SELECT", e["dbname"]})
	}
	for _, command := range append(words, []string{"PING"}) {
		if err := execute(conn, command...); err != nil {
			_ = conn.Close()
			return nil, e.ConcealError(fmt.Errorf("%s: %w", command[0], err))
		}
	}
	return conn, conn.SetDeadline(time.Time{})
}

// execute sends a command whose answer is one line without an error.
func execute(conn net.Conn, words ...string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return err
	}
	var line []byte
	for one := make([]byte, 1); len(line) < answerBytes; { // nothing behind the line may be taken away
		if _, err := io.ReadFull(conn, one); err != nil {
			return fmt.Errorf("wait for the answer: %w", err)
		}
		if line = append(line, one[0]); one[0] == '\n' {
			break
		}
	}
	answer := strings.TrimSpace(string(line))
	if !strings.HasPrefix(answer, "+") {
		return fmt.Errorf("the server says %.120q", strings.TrimPrefix(answer, "-"))
	}
	return nil
}

// open listens on a socket, and connects once to find out whether the endpoint can be reached.
func (r *relay) open(ctx context.Context, path string) error {
	first, err := r.dial(ctx)
	if err != nil {
		return err
	}
	_ = first.Close()
	if r.listener, err = net.Listen("unix", path); err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // its folder lets in the user of the clients only
		return err
	}
	inner, cancel := context.WithCancel(context.Background()) // until close
	r.stop = cancel
	r.all.Go(func() {
		for {
			client, err := r.listener.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.pass(inner, client) })
		}
	})
	return nil
}

// pass connects one client.
func (r *relay) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := r.dial(ctx)
	if err != nil {
		r.mu.Lock()
		r.last = err
		r.mu.Unlock()
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close() // neither side keeps a half of it
		})
	}
	both.Wait()
}

// close ends all connections. nil has none.
func (r *relay) close() {
	if r == nil || r.listener == nil {
		return
	}
	r.stop()
	_ = r.listener.Close()
	r.all.Wait()
}

// explain adds why the endpoint was not reached.
func (r *relay) explain(err error) error {
	if r == nil || err == nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, r.last)
}

const (
	pings     = 200
	pingsMost = 2 * time.Second
)

// cost is by how much the relay delays a command of an idle connection: the difference of the medians of commands through it and beside it.
func (r *relay) cost(ctx context.Context, path string) (through, beside time.Duration, err error) {
	direct, err := r.dial(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer direct.Close()
	relayed, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return 0, 0, err
	}
	defer relayed.Close()
	var took [2][]time.Duration
	began := time.Now()
	for range pings {
		for i, conn := range []net.Conn{relayed, direct} {
			at := time.Now()
			_ = conn.SetDeadline(at.Add(dialMost))
			if err := execute(conn, "PING"); err != nil {
				return 0, 0, r.explain(err)
			}
			took[i] = append(took[i], time.Since(at))
		}
		if time.Since(began) > pingsMost {
			break
		}
	}
	if len(took[0]) == 0 {
		return 0, 0, errors.New("no answer in time")
	}
	for i := range took {
		slices.Sort(took[i])
	}
	return took[0][len(took[0])/2], took[1][len(took[1])/2], nil
}
