package bmc

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fileOf is a target file with the BMC of a service for each node.
func fileOf(t *testing.T, services []*service, nodes ...string) target.Config {
	t.Helper()
	var b strings.Builder
	b.WriteString("provider: cluster\nnodes:\n")
	for i, n := range nodes {
		s := services[min(i, len(services)-1)]
		n = strings.ReplaceAll(n, "SERVICE", fmt.Sprintf("address: %q, credential: bmc", strings.TrimPrefix(s.URL, "https://")))
		b.WriteString("  - " + strings.ReplaceAll(n, "PIN", "fingerprint: "+s.fingerprint()) + "\n")
	}
	fmt.Fprintf(&b, "credentials:\n  bmc: {user: %s, secret: {file: %s}}\n", testUser, secretFile(t, testPassword).File)
	c, list := target.ParseConfig("cluster.yml", []byte(b.String()), []target.Provider{{Name: "cluster"}})
	if len(list) > 0 {
		t.Fatal(list)
	}
	return c
}

// A check reads what every BMC says and reports each fault at its line, without switching anything.
func TestCheck(t *testing.T) {
	right, silent := newService(t), newService(t)
	silent.state = "Perhaps"
	for name, c := range map[string]struct {
		nodes []string
		want  []string // line, code and severity
	}{
		"fine":            {[]string{"{id: a, uuid: " + uuidSwapped + ", bmc: {SERVICE, PIN}}"}, nil},
		"another machine": {[]string{"{id: a, uuid: " + uuidOther + ", bmc: {SERVICE, PIN}}"}, []string{"3 bmc-identity error"}},
		"another serial":  {[]string{"{id: a, serial: 7XK0Q14, bmc: {SERVICE, PIN}}"}, []string{"3 bmc-identity error"}},
		"one for two":     {[]string{"{id: a, bmc: {SERVICE, PIN}}", "{id: b, bmc: {SERVICE, PIN}}"}, []string{"4 bmc-twice error"}},
		"no trust":        {[]string{"{id: a, bmc: {SERVICE}}"}, []string{"3 bmc-certificate error"}},
		"unverified":      {[]string{"{id: a, bmc: {SERVICE, tls: unverified}}"}, []string{"3 bmc-certificate warning"}},
		"no such system":  {[]string{"{id: a, bmc: {SERVICE, PIN, system: Blade7}}"}, []string{"3 bmc-system error"}},
		"no BMC":          {[]string{"{id: a}"}, nil},
		"no credential":   {[]string{"{id: a, bmc: {address: 192.0.2.1}}"}, []string{"3 bmc-credential error"}},
	} {
		readings, list := Check(t.Context(), fileOf(t, []*service{right}, c.nodes...))
		var got []string
		for _, d := range list {
			got = append(got, fmt.Sprintf("%d %s %s", d.Pos.Line, d.Code, d.Severity))
			if !strings.HasPrefix(d.Source[d.Pos.Column-1:], "bmc:") || strings.Contains(d.Message, testPassword) {
				t.Errorf("%s: %v", name, d)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s: got %v, want %v", name, list, c.want)
		}
		if name == "fine" && (len(readings) != 1 || readings[0].Power != target.PowerOn || readings[0].Matches != "UUID" || readings[0].Identity.UUID != uuidDMI) {
			t.Errorf("got %+v", readings)
		}
	}
	if readings, list := Check(t.Context(), fileOf(t, []*service{silent}, "{id: a, bmc: {SERVICE, PIN}}")); len(list) != 1 || list[0].Code != CodeGarbage ||
		readings[0].Power != target.PowerUnknown {
		t.Errorf("got %v, %v", readings, list)
	}
	if len(right.resets)+len(right.strays)+len(silent.resets) > 0 {
		t.Errorf("a check switched something: %v %v", right.resets, right.strays)
	}
}

// An unreachable BMC is reported differently from an error in the target file.
func TestAway(t *testing.T) {
	for code, want := range map[string]bool{
		CodeUnreachable: true, CodeLogin: true, CodeCertificate: true, CodeProgram: true, CodeCredential: true, CodeIdentity: false, CodeTwice: false,
		CodeSystem: false, "target-type": false,
	} {
		if Away(code) != want {
			t.Errorf("%s: %v", code, !want)
		}
	}
}

// A password shows its stars however it is printed.
func TestPasswordIsHidden(t *testing.T) {
	p := password{"hunter2"}
	w, err := newWire("left", target.BMC{Address: "192.0.2.1"}, "u", p)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(p), fmt.Sprintf("%v %+v %#v %s %q", p, p, p, p, p), fmt.Sprintf("%v %+v", w.secret, struct{ P password }{p})} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("shown: %s", text)
		}
	}
}
