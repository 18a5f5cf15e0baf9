package bmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"encoding/pem"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// quick are options for real peers: what waits in them is bounded by readings, not by this machine's speed.
var quick = Options{Poll: 20 * time.Millisecond, Again: 20 * time.Millisecond, Settle: 50 * time.Millisecond, Late: 50 * time.Millisecond}

func openQuick(t *testing.T, c target.Config, o Options) *Switch {
	t.Helper()
	controller, err := dial(t.Context(), "left", c, *c.Nodes[0].BMC)
	if err != nil {
		t.Fatal(err)
	}
	return NewSwitch("left", controller, o)
}

func TestRedfish(t *testing.T) {
	for name, change := range map[string]func(*service){
		"as it is":             func(*service) {},
		"by ActionInfo":        func(s *service) { s.byInfo = true },
		"resets not listed":    func(s *service) { s.allowed = nil },
		"effect after a while": func(s *service) { s.delay = 200 * time.Millisecond },
		"root with a redirect": func(s *service) {
			s.redirect["/redfish/v1/"] = "/redfish/v1/root"
			s.override["/redfish/v1/root"] = `{"Systems": {"@odata.id": "/redfish/v1/Systems"}}`
		},
		"links with a slash behind": func(s *service) {
			s.override["/redfish/v1/Systems"] = `{"Members": [{"@odata.id": "/redfish/v1/Systems/437XR1138R2/"}]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := newService(t)
			change(service)
			s := openQuick(t, service.config(), quick)
			if state, err := s.State(t.Context()); err != nil || state != target.PowerOn {
				t.Fatalf("got %s, %v", state, err)
			}
			if id, err := s.Identity(t.Context()); err != nil || id.UUID != uuidDMI || !slices.Contains(id.Serials, "7XK0Q13") {
				t.Errorf("got %v, %v", id, err)
			}
			for _, act := range []func(context.Context) error{s.Off, s.Off, s.On, s.On, s.Soft, s.On} {
				if err := act(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if want := []string{"ForceOff", "On", "GracefulShutdown", "On"}; !slices.Equal(service.resets, want) || len(service.strays) > 0 {
				t.Errorf("got the resets %v, want %v; strays %v", service.resets, want, service.strays)
			}
		})
	}
}

// ResetType is one that the service allows, and never one that means something else.
func TestResetType(t *testing.T) {
	for _, c := range []struct {
		allowed    []string
		noReset    bool
		on         bool
		act        func(*Switch, context.Context) error
		want, code string
	}{
		{allowed: []string{"ForceOn", "ForceOff"}, act: (*Switch).On, want: "ForceOn"},
		{allowed: []string{"ForceOn", "On"}, act: (*Switch).On, want: "On"},
		{allowed: []string{"PushPowerButton"}, act: (*Switch).On, code: CodeLacks},
		{allowed: []string{"On", "GracefulShutdown", "PushPowerButton"}, on: true, act: (*Switch).Off, code: CodeLacks},
		{allowed: []string{"On", "ForceOff"}, on: true, act: (*Switch).Soft, code: CodeLacks},
		{noReset: true, on: true, act: (*Switch).Off, code: CodeLacks},
	} {
		service := newService(t)
		service.allowed, service.on, service.noReset = c.allowed, c.on, c.noReset
		err := c.act(openQuick(t, service.config(), quick), t.Context())
		if codeOf(err) != c.code || c.want == "" && len(service.resets) > 0 || c.want != "" && !slices.Equal(service.resets, []string{c.want}) {
			t.Errorf("%v: got %v, resets %v, want %q", c.allowed, err, service.resets, c.want)
		}
	}
}

// An invalid response of a service is reported with its code, and switches nothing.
func TestRedfishMisbehaviour(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	long := Options{Poll: 20 * time.Millisecond, Again: 20 * time.Millisecond, Settle: 50 * time.Millisecond, Timeout: 2 * time.Second, Late: time.Millisecond}
	for name, c := range map[string]struct {
		change func(*service)
		code   string
		says   string
	}{
		"html":           {func(s *service) { s.override["/redfish/v1/"] = "<html>" }, CodeGarbage, "not what Redfish sends"},
		"half an answer": {func(s *service) { s.override["/redfish/v1/Systems"] = `{"Members": [` }, CodeGarbage, ""},
		"wrong types":    {func(s *service) { s.override["/redfish/v1/Systems"] = `{"Members": 7}` }, CodeGarbage, ""},
		"a huge answer":  {func(s *service) { s.override["/redfish/v1/"] = strings.Repeat(" ", 2<<20) }, CodeGarbage, "more than"},
		"no systems":     {func(s *service) { s.systems = nil }, CodeGarbage, "no system"},
		"endless pages": {func(s *service) {
			s.override["/redfish/v1/Systems"] = `{"Members@odata.nextLink": "/redfish/v1/Systems"}`
		}, CodeGarbage, "no system"},
		"several systems": {func(s *service) { s.systems = []string{"1", "2"} }, CodeSystem, "2 systems"},
		"no such state":   {func(s *service) { s.state = "Perhaps" }, CodeGarbage, "Perhaps"},
		"link elsewhere": {func(s *service) {
			s.override["/redfish/v1/"] = `{"Systems": {"@odata.id": "https://192.0.2.1/redfish/v1/Systems"}}`
		}, CodeGarbage, "refused"},
		"link to a host": {func(s *service) {
			s.override["/redfish/v1/"] = `{"Systems": {"@odata.id": "//192.0.2.1/redfish/v1/Systems"}}`
		}, CodeGarbage, "refused"},
		"link out": {func(s *service) {
			s.override["/redfish/v1/"] = `{"Systems": {"@odata.id": "/redfish/../admin/delete"}}`
		}, CodeGarbage, "refused"},
		"redirect away":    {func(s *service) { s.redirect["/redfish/v1/"] = "https://192.0.2.1/redfish/v1/" }, CodeGarbage, "refused"},
		"redirect to http": {func(s *service) { s.redirect["/redfish/v1/"] = "http://" + s.Listener.Addr().String() + "/redfish/v1/" }, CodeGarbage, "refused"},
		"redirect circle":  {func(s *service) { s.redirect["/redfish/v1/"] = "/redfish/v1/" }, CodeGarbage, "refused"},
		"redirected reset": {func(s *service) {
			s.redirect["/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset"] = "/redfish/v1/"
		}, CodeGarbage, "refused"},
		"conflict":          {func(s *service) { s.status = http.StatusConflict }, CodeRefused, "is in standby"},
		"server error":      {func(s *service) { s.status = http.StatusInternalServerError }, CodeRefused, "500"},
		"forbidden":         {func(s *service) { s.status = http.StatusForbidden }, CodeForbidden, "403"},
		"ok without effect": {func(s *service) { s.deaf = true }, CodeNoEffect, "it is on"},
		"hang":              {func(s *service) { s.hang = make(chan struct{}) }, CodeUnreachable, "no answer in time"},
		"gone":              {func(s *service) { s.Close() }, CodeUnreachable, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := newService(t)
			config := service.config()
			c.change(service)
			err := openQuick(t, config, long).Off(t.Context())
			if codeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s that says %q", err, c.code, c.says)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), testPassword) {
				t.Error("the error shows the password")
			}
			service.mu.Lock()
			defer service.mu.Unlock()
			if !service.on || len(service.strays) > 0 {
				t.Errorf("the node is on: %v; strays %v", service.on, service.strays)
			}
		})
	}
}

func TestRedfishSystemByName(t *testing.T) {
	service := newService(t)
	service.systems = []string{"Blade1", "Blade2", "Blade10"}
	for name, ok := range map[string]bool{"Blade2": true, "/redfish/v1/Systems/Blade10": true, "Blade": false, "blade2": false, "": false} {
		c := service.config()
		c.Nodes[0].BMC.System = name
		_, err := openQuick(t, c, quick).State(t.Context())
		if (err == nil) != ok || !ok && (codeOf(err) != CodeSystem || diag.ExitCode(err) != diag.ExitUnavailable) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRedfishLogin(t *testing.T) {
	service := newService(t)
	c := service.config()
	c.Credentials["bmc"] = target.Credential{User: testUser, Secret: secretFile(t, "wrong-password")}
	err := openQuick(t, c, quick).Off(t.Context())
	if codeOf(err) != CodeLogin || diag.ExitCode(err) != diag.ExitUnavailable || strings.Contains(err.Error(), "wrong-password") || !service.on {
		t.Errorf("got %v", err)
	}
}

// The certificate is the pinned one or signed by a trusted authority; otherwise no password is sent.
func TestCertificates(t *testing.T) {
	service := newService(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(other, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*target.BMC)
		code   string
		says   string
	}{
		"pinned":             {func(*target.BMC) {}, "", ""},
		"another pin":        {func(b *target.BMC) { b.Fingerprint = strings.Repeat("ab", 32) }, CodeCertificate, service.fingerprint()},
		"nothing said":       {func(b *target.BMC) { b.Fingerprint = "" }, CodeCertificate, "not trusted"},
		"by its authority":   {func(b *target.BMC) { b.Fingerprint, b.CAFile = "", ca }, "", ""},
		"no PEM":             {func(b *target.BMC) { b.Fingerprint, b.CAFile = "", other }, CodeCertificate, "no certificate"},
		"no file":            {func(b *target.BMC) { b.Fingerprint, b.CAFile = "", "/no/such/file" }, CodeCertificate, "no such file"},
		"a device as file":   {func(b *target.BMC) { b.Fingerprint, b.CAFile = "", "/dev/zero" }, CodeCertificate, "not a regular file"},
		"unverified":         {func(b *target.BMC) { b.Fingerprint, b.TLS = "", target.TLSUnverified }, "", ""},
		"plain HTTP to TLS":  {func(b *target.BMC) { b.Fingerprint, b.TLS = "", target.TLSNone }, CodeRefused, "400"},
		"address with a pin": {func(b *target.BMC) { b.Address = "127.0.0.1:" + port(b.Address) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := service.config()
			c.change(config.Nodes[0].BMC)
			_, list := Check(t.Context(), config)
			codes := []string{}
			for _, d := range list {
				if d.Severity == diag.SeverityError {
					codes = append(codes, d.Code)
					if !strings.Contains(d.Message, c.says) {
						t.Errorf("got %q, want %q", d.Message, c.says)
					}
				}
			}
			if c.code == "" && len(codes) > 0 || c.code != "" && !slices.Equal(codes, []string{c.code}) {
				t.Errorf("got %v, want %q", list, c.code)
			}
			if name == "nothing said" && !strings.Contains(list[0].Hint, service.fingerprint()) {
				t.Errorf("the hint does not show the fingerprint: %s", list[0].Hint)
			}
			if banner := StaticFacts(config); (len(banner) > 0) != (config.Nodes[0].BMC.TLS != "") {
				t.Errorf("facts for the report: %v", banner)
			}
		})
	}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// A machine in the middle that has a certificate of its own sees no password.
func TestManInTheMiddle(t *testing.T) {
	service := newService(t)
	seen := make(chan string, 100)
	thief := quietTLS(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") })
	defer thief.Close()
	for _, tls := range []struct{ fingerprint, mode string }{{strings.Repeat("ab", 32), ""}, {"", ""}, {"", target.TLSVerified}} {
		c := service.config()
		c.Nodes[0].BMC.Address = strings.TrimPrefix(thief.URL, "https://")
		c.Nodes[0].BMC.Fingerprint, c.Nodes[0].BMC.TLS = tls.fingerprint, tls.mode
		err := openQuick(t, c, quick).Off(t.Context())
		if codeOf(err) != CodeCertificate || diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("got %v with exit code %d", err, diag.ExitCode(err))
		}
	}
	if len(seen) > 0 {
		t.Error("a request went to the machine in the middle")
	}
}

// No proxy of the environment is used: only the configured address is spoken to. (Go reads the environment once in a
// process and never asks a proxy for this machine, so that a real one cannot show it here.)
func TestNoProxy(t *testing.T) {
	w, err := newWire("left", target.BMC{Address: "192.0.2.1"}, "u", password{"p"})
	if err != nil {
		t.Fatal(err)
	}
	if w.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy may be used")
	}
}

// A server that drips its answer, or stops in the middle of it, does not hold an operation.
func TestDrippingServer(t *testing.T) {
	service := newService(t)
	config := service.config()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-stop:
				return
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
			}
		}
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	config.Nodes[0].BMC.Address, config.Nodes[0].BMC.Fingerprint, config.Nodes[0].BMC.TLS = listener.Addr().String(), "", target.TLSNone
	o := quick
	o.Attempt, o.Timeout = 200*time.Millisecond, time.Second
	if err := openQuick(t, config, o).Off(t.Context()); codeOf(err) != CodeUnreachable {
		t.Errorf("got %v", err)
	}
	close(stop)
	_ = server.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// Whatever link a service sends, the request goes to the configured address.
func FuzzLinks(f *testing.F) {
	for _, seed := range []string{"/redfish/v1/", "//x/redfish/", "https://u:p@x/redfish/", "/redfish/..%2f..", "/redfish/v1?a=b#c", "\\\\x\\redfish", "/redfish/\r\nHost: x", "/redfish/%zz"} {
		f.Add(seed)
	}
	w, err := newWire("left", target.BMC{Protocol: target.Redfish, Address: "192.0.2.7:8443"}, "u", password{"p"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, link string) {
		u, err := w.address(link)
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.Host != "192.0.2.7:8443" || !strings.HasPrefix(u.Path, "/redfish/") {
			t.Errorf("%q leads to %s", link, u)
		}
		r, err := http.NewRequest(http.MethodGet, u.String(), nil)
		if err == nil && r.URL.Host != "192.0.2.7:8443" {
			t.Errorf("%q leads to %s", link, r.URL)
		}
	})
}

// Whatever a service sends as its system, reading it ends with a state or with an error.
func FuzzRedfishSystem(f *testing.F) {
	for _, seed := range []string{`{"PowerState": "On"}`, `{"PowerState": null}`, `[]`, `{"UUID": 7}`, `{"Actions": {"#ComputerSystem.Reset": {"target": "//x"}}}`} {
		f.Add([]byte(seed))
	}
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(body) }))
	f.Cleanup(server.Close)
	w, err := newWire("left", target.BMC{Address: strings.TrimPrefix(server.URL, "http://"), TLS: target.TLSNone}, "u", password{"p"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body = text
		r := &redfish{node: "left", wire: w, systems: "/redfish/v1/Systems/1"}
		state, err := r.State(t.Context())
		if (err == nil) == (state == target.PowerUnknown) && !strings.Contains(string(text), "P") {
			t.Errorf("%q: %s, %v", text, state, err)
		}
		r.systems = "/redfish/v1/Systems/1"
		if id, err := r.Identity(t.Context()); err == nil {
			_, _ = id.Compare(id)
			_ = id.shown()
		}
	})
}
