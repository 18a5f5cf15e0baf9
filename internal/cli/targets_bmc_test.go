package cli_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
)

// redfishSystem is a Redfish service that shows one system and must not receive a request to switch it.
func redfishSystem(t *testing.T) (address, fingerprint string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("a check sends %s %s", r.Method, r.URL)
		case user != "ADMIN" || password != "hunter2":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/redfish/v1/":
			_, _ = io.WriteString(w, `{"Systems": {"@odata.id": "/redfish/v1/Systems"}}`)
		case r.URL.Path == "/redfish/v1/Systems":
			_, _ = io.WriteString(w, `{"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}`)
		default:
			_, _ = io.WriteString(w, `{"Id": "1", "PowerState": "On", "UUID": "4C4C4544-0058-4B10-8030-B7C04F513133", "SerialNumber": "7XK0Q13"}`)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://"), fmt.Sprintf("%x", sha256.Sum256(server.Certificate().Raw))
}

// The check of a target file reads its BMCs also where the platform does not answer, tells faults at their lines, and the
// exit code says whether the file is wrong or something is away.
func TestTargetsCheckReadsBMCs(t *testing.T) {
	t.Parallel()
	address, fingerprint := redfishSystem(t)
	for name, c := range map[string]struct {
		node, bmc string
		exit      int
		out, errs string
	}{
		"fine":            {"uuid: 44454c4c-5800-104b-8030-b7c04f513133", "credential: bmc, fingerprint: " + fingerprint, diag.ExitUnavailable, "7XK0Q13", ""},
		"another machine": {"serial: 7XK0Q14", "credential: bmc, fingerprint: " + fingerprint, diag.ExitData, "7XK0Q13", "target.yml:6:5: error: the BMC of node \"left\" belongs to another machine"},
		"wrong password":  {"name: left", "credential: bad, fingerprint: " + fingerprint, diag.ExitUnavailable, "unknown", "target.yml:6:5: error: read the power state"},
		"not pinned":      {"name: left", "credential: bmc", diag.ExitUnavailable, "unknown", "sha256:" + fingerprint},
		"unverified":      {"name: left", "credential: bmc, tls: unverified", diag.ExitUnavailable, "7XK0Q13", "warning: the connection to the BMC of node \"left\" is NOT VERIFIED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"bmc": "hunter2\n", "bad": "hunter3\n", "target.yml": fmt.Sprintf(`provider: libvirt
nodes:
  - id: left
    address: bragg.invalid
    %s
    bmc: {address: %q, %s}
credentials:
  bmc: {user: ADMIN, secret: {file: %s/bmc}}
  bad: {user: ADMIN, secret: {file: %s/bad}}
`, c.node, address, c.bmc, dir, dir)} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out, errs bytes.Buffer
			code := cli.Main(t.Context(), console.Process{
				Arguments: []string{"targets", "check", "target.yml"}, Getenv: func(string) string { return "" }, Directory: dir,
				Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			})
			if code != c.exit || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, c.exit, &out, &errs)
			}
			if text := out.String() + errs.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "hunter3") {
				t.Errorf("a password is shown:\n%s", text)
			}
		})
	}
}
