package virsh

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
)

// tunnel is the way to the libvirt of a host behind ssh: one connection of ssh, which forwards libvirt's socket there to calls of virsh
// here. virsh could run ssh by itself, but it would log in for each call, which takes ten times as long as the call and loads the
// host that is measured; sshd refuses some of many concurrent logins; and virsh hands no options to ssh, neither the expected host
// key nor a timeout for a silent host.
//
// The connection is made when it is first needed, and again after it broke. The zero values below mu are a tunnel that is closed.
type tunnel struct {
	host    sshlink.Host
	options []string // of ssh, for -o
	sockets []string // where libvirt may listen there, the likeliest first
	path    string   // of URIs: "/system"
	// try makes a call of virsh that changes nothing.
	try func(ctx context.Context, uri string) error

	mu      sync.Mutex
	ended   bool
	pending *attempt    // nil: no connection is being made
	current *connection // nil: there has been none, or it was dropped
	all     sync.WaitGroup
}

// attempt is a connection that is being made, for all calls that wait for it. Its outcome is valid when done is closed.
type attempt struct {
	done   chan struct{}
	cancel context.CancelFunc
	uri    string
	err    error
}

// connection is one of ssh with its sockets on this machine.
type connection struct {
	link *sshlink.Link
	dir  string // holds nothing but sockets
	uri  string // of the socket that answers
}

// connectLimit bounds the making of a connection, libvirt's first answer included.
const connectLimit = 20 * time.Second

// systemSockets are those of a host with one daemon for each part of libvirt, and with one daemon for everything.
var systemSockets = []string{"/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock"}

// plainPath is a path that ssh takes literally: it would expand %, $ and ~, and split paths at blanks and colons.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./+@-]*$`)

// newTunnel reads a URI that checkURI returned; nil of one that needs no ssh.
func newTunnel(uri string, run Runner) (*tunnel, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "qemu+ssh" {
		return nil, err
	}
	where := u.Host
	if ip := u.Hostname(); strings.Contains(ip, ":") {
		where = "[" + ip + "]"
		if port := u.Port(); port != "" {
			where += ":" + port
		}
	}
	if user := u.User.Username(); user != "" {
		where = user + "@" + where
	}
	host, err := sshlink.ParseHost(where)
	if err != nil {
		return nil, badURI(uri, err.Error())
	}
	t := &tunnel{host: host, path: u.Path, sockets: systemSockets}
	query := u.Query()
	for key, values := range query {
		if key != "no_tty" && !plainPath.MatchString(values[0]) {
			return nil, badURI(uri, fmt.Sprintf("parameter %q has characters that ssh does not take literally", key))
		}
	}
	if file := query.Get("keyfile"); file != "" {
		t.options = append(t.options, "IdentityFile="+file, "IdentitiesOnly=yes")
	}
	if file := query.Get("known_hosts"); file != "" {
		t.options = append(t.options, "UserKnownHostsFile="+file, "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes", "UpdateHostKeys=no")
	}
	if socket := query.Get("socket"); socket != "" {
		t.sockets = []string{socket}
	} else if t.path != "/system" {
		return nil, badURI(uri, "a session daemon over ssh needs its socket: socket=/run/user/1000/libvirt/libvirt-sock")
	}
	t.try = func(ctx context.Context, uri string) error {
		_, err := run(ctx, Call{URI: uri, Args: []string{"uri"}, Limit: connectLimit})
		return err
	}
	return t, nil
}

// reach returns the URI by which virsh reaches the host now.
func (t *tunnel) reach(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return "", ErrClosed
	}
	if t.current.lives() {
		defer t.mu.Unlock()
		return t.current.uri, nil
	}
	d := t.pending
	if d == nil {
		// Other calls wait for it too, so the first one giving up does not end it.
		bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), connectLimit, ErrTimedOut)
		d = &attempt{done: make(chan struct{}), cancel: cancel}
		t.pending = d
		t.all.Go(func() { t.renew(bounded, d) })
	}
	t.mu.Unlock()
	select {
	case <-d.done:
		return d.uri, d.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (t *tunnel) renew(ctx context.Context, d *attempt) {
	defer close(d.done)
	defer d.cancel()
	made, err := t.connect(ctx)
	t.mu.Lock()
	t.pending = nil
	before := t.current
	t.current = made
	if t.ended && made != nil {
		before, t.current, err = made, nil, ErrClosed
	}
	t.mu.Unlock()
	before.end()
	if d.err = err; err == nil {
		d.uri = made.uri
	}
}

// connect makes a connection, and finds out which of the host's sockets answers.
func (t *tunnel) connect(ctx context.Context) (*connection, error) {
	dir, err := socketFolder()
	if err != nil {
		return nil, fmt.Errorf("reach host %q: %w", t.host.Name, err)
	}
	made := &connection{dir: dir}
	f := &sshlink.Forwarding{Options: t.options}
	for i, s := range t.sockets {
		f.Sockets = append(f.Sockets, [2]string{made.socket(i), s})
	}
	if made.link, err = sshlink.Forward(ctx, t.host, f); err != nil {
		made.end()
		return nil, passing(err)
	}
	var errs []error
	for i := range t.sockets {
		uri := "qemu+unix://" + t.path + "?socket=" + made.socket(i)
		if err = t.try(ctx, uri); err == nil {
			made.uri = uri
			return made, nil
		}
		if errors.Is(err, exec.ErrNotFound) {
			made.end()
			return nil, err // virsh is missing here
		}
		errs = append(errs, err)
	}
	err = t.unanswered(errs)
	made.end()
	return nil, passing(err)
}

// passing marks an error of ssh after which another attempt may succeed.
func passing(err error) error {
	var e *diag.Error
	if errors.As(err, &e) && (e.Code == sshlink.CodeHostKey || e.Code == sshlink.CodeRefused || e.Code == "no-ssh") {
		return err
	}
	return &unreached{err}
}

// unreached is an error with the mark of errUnreached, and its own words.
type unreached struct{ err error }

func (u *unreached) Error() string   { return u.err.Error() }
func (u *unreached) Unwrap() []error { return []error{u.err, errUnreached} }

// unanswered is the error of an ssh login without a libvirt behind it. sshd gives one answer for every reason that keeps it from a socket.
func (t *tunnel) unanswered(errs []error) error {
	return &diag.Error{
		Code: "libvirt-ssh-socket", Exit: diag.ExitUnavailable, Err: errs[len(errs)-1],
		Message: fmt.Sprintf("host %q: ssh succeeded, but no libvirt answers at %s", t.host.Name, strings.Join(t.sockets, " or ")),
		Hint: "check that libvirtd or virtqemud runs there, that socket=PATH in the connection names its socket if it is elsewhere, " +
			"that the user may use it, and that sshd forwards it (AllowStreamLocalForwarding)",
	}
}

// drop ends the connection; a tunnel that is nil has none.
func (t *tunnel) drop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	current := t.current
	t.current = nil
	t.mu.Unlock()
	current.end()
}

// close ends the connection for good, and waits for what is being made.
func (t *tunnel) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.ended = true
	if t.pending != nil {
		t.pending.cancel()
	}
	t.mu.Unlock()
	t.all.Wait()
	t.drop()
}

func (c *connection) lives() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.link.Gone():
		return false
	default:
		return true
	}
}

func (c *connection) socket(i int) string { return filepath.Join(c.dir, fmt.Sprint(i)) }

// end ends ssh and removes its sockets.
func (c *connection) end() {
	if c == nil {
		return
	}
	if c.link != nil {
		c.link.HangUp(sshlink.HangUpMax)
	}
	_ = os.RemoveAll(c.dir) // it holds the sockets of this connection alone
}

// The path of a socket has at most 107 bytes (unix(7)).
const (
	socketFolderPrefix   = "bragg-tunnel-"
	socketParentBytesMax = 64
)

// socketFolder makes a folder for sockets that only this user can read.
func socketFolder() (string, error) {
	var errs []error
	for _, parent := range slices.Compact([]string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"}) {
		if len(parent) > socketParentBytesMax || !plainPath.MatchString(parent) {
			continue
		}
		if _, done := swept.LoadOrStore(parent, true); !done {
			sweepSockets(parent)
		}
		dir, err := os.MkdirTemp(parent, socketFolderPrefix)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("make a folder for sockets: %w", errors.Join(errs...))
}
