package image

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"go.yaml.in/yaml/v4"
	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/guest"
	"github.com/braggdev/bragg/internal/trust"
)

func sshKey(t testing.TB) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " a user's: \"key\" # yes"
}

func goodGuest(t testing.TB) Guest {
	t.Helper()
	a, err := trust.New("run-7", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := a.Agent("DB 1")
	if err != nil {
		t.Fatal(err)
	}
	return Guest{
		VM: "DB 1", InstanceID: "run-7-db-1", Listen: ":7401", Identity: identity, User: "bragg", Keys: []string{sshKey(t)},
		Network: []Link{{MAC: "52:54:00:00:00:01", Address: "10.0.2.10/24", Gateway: "10.0.2.1"}}, Program: []byte("\x7fELF program"),
	}
}

// filesOf reads a seed back.
func filesOf(t testing.TB, disk []byte) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	storage, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	system, err := iso9660.Read(storage, int64(len(disk)), 0, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimRight(system.Label(), "\x00 ") != guest.VolumeLabel {
		t.Errorf("the label is %q", system.Label())
	}
	entries, err := system.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		f, err := system.OpenFile("/"+e.Name(), os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

func TestDefaultRouteHasTheFamilyOfItsGateway(t *testing.T) {
	t.Parallel()
	for gateway, want := range map[string]string{"10.0.2.1": "0.0.0.0/0", "fd00::1": "::/0"} {
		e := networkOf([]guest.Link{{Gateway: gateway}}).Ethernets["link0"]
		if len(e.Routes) != 1 || e.Routes[0] != (cloudRoute{To: want, Via: gateway}) {
			t.Errorf("%s: %+v", gateway, e.Routes)
		}
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	g := goodGuest(t)
	disk, err := Seed(g)
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, disk)
	if files[programFile] != string(g.Program) || len(files) != 5 {
		t.Errorf("the seed holds %d files, and the program %q", len(files), files[programFile])
	}
	s, err := guest.ReadSeed(strings.NewReader(files[guest.SeedFile]))
	if err != nil {
		t.Fatal(err)
	}
	if s.Agent.VM != g.VM || s.MachineID != MachineID(g.InstanceID) || s.Files[s.Agent.TLS.Key] != string(g.Identity.Key) ||
		s.Hostname != "db-1" || !reflect.DeepEqual(s.Network, g.Network) {
		t.Errorf("the seed says %+v", s)
	}
	if !strings.HasPrefix(files["user-data"], "#cloud-config\n") {
		t.Errorf("user-data begins with %.20q", files["user-data"])
	}
	u := readYAML[userData](t, files["user-data"])
	if len(u.Users) != 1 || u.Users[0].Name != "bragg" || !slices.Equal(u.Users[0].Keys, g.Keys) || !u.Users[0].LockPassword {
		t.Errorf("users are %+v", u.Users)
	}
	for _, f := range u.WriteFiles {
		if strings.HasSuffix(f.Path, ".key") && (f.Content != string(g.Identity.Key) || f.Permissions != "0600") {
			t.Errorf("the key is written as %+v", f)
		}
	}
	if m := readYAML[metaData](t, files["meta-data"]); m.InstanceID != g.InstanceID || m.Hostname != "db-1" {
		t.Errorf("meta-data is %+v", m)
	}
	n := readYAML[networkConfig](t, files["network-config"])
	if e := n.Ethernets["link0"]; n.Version != 2 || e.Match["macaddress"] != g.Network[0].MAC || e.Addresses[0] != "10.0.2.10/24" || e.DHCP {
		t.Errorf("the network is %+v", n)
	}
}

// The documents alone are those of the seed, and have no room for a program.
func TestCloudInit(t *testing.T) {
	t.Parallel()
	g := goodGuest(t)
	if _, _, _, err := CloudInit(g); err == nil {
		t.Error("a program was taken and not delivered")
	}
	g.Program = nil
	user, meta, network, err := CloudInit(g)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := Seed(g)
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, disk)
	if string(user) != files["user-data"] || string(meta) != files["meta-data"] || string(network) != files["network-config"] {
		t.Errorf("got\n%s\n%s\n%s", user, meta, network)
	}
	g.InstanceID = ""
	if _, _, _, err := CloudInit(g); err == nil {
		t.Error("a VM without an identity was described")
	}
}

// A guest can have an ssh host key that its maker knows, and let root in by keys.
func TestSeedLogins(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	g := goodGuest(t)
	g.RootKeys, g.HostKey = g.Keys, string(pem.EncodeToMemory(block))
	disk, err := Seed(g)
	if err != nil {
		t.Fatal(err)
	}
	signer, _ := ssh.NewSignerFromKey(key)
	u := readYAML[userData](t, filesOf(t, disk)["user-data"])
	if u.RootLocked || len(u.Users) != 2 || u.Users[1].Name != "root" || !slices.Equal(u.Users[1].Keys, g.Keys) || !u.Users[1].LockPassword || u.Users[1].Sudo != "" {
		t.Errorf("users are %+v", u.Users)
	}
	if u.HostKeys == nil || u.HostKeys.Private != g.HostKey || u.HostKeys.Public != string(ssh.MarshalAuthorizedKey(signer.PublicKey())) {
		t.Errorf("host keys are %+v", u.HostKeys)
	}
	g.HostKey = "not a key"
	if _, err := Seed(g); err == nil {
		t.Error("a seed with a damaged host key")
	}
}

func readYAML[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// A clone asks for an address by what is its own, and starts no agent of another.
func TestSeedForDHCP(t *testing.T) {
	t.Parallel()
	g := goodGuest(t)
	g.Network, g.User, g.Keys, g.Program = nil, "", nil, nil
	disk, err := Seed(g)
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, disk)
	n := readYAML[networkConfig](t, files["network-config"])
	if e := n.Ethernets["all"]; !e.DHCP || e.DHCPIdentifier != "mac" {
		t.Errorf("the network is %+v", n)
	}
	u := readYAML[userData](t, files["user-data"])
	if len(u.Users) != 0 || len(u.RunCommands) != 4 || strings.Contains(files["user-data"], "users:") {
		t.Errorf("user-data is %s", files["user-data"])
	}
	// Programs that read YAML 1.1 must not take these for numbers.
	if !strings.Contains(files["user-data"], `permissions: "0600"`) {
		t.Errorf("permissions are numbers in %s", files["user-data"])
	}
}

func TestSeedFaults(t *testing.T) {
	t.Parallel()
	key := sshKey(t)
	for want, spoil := range map[string]func(*Guest){
		"instance_id":                func(g *Guest) { g.InstanceID = "a/b" },
		"agent.listen":               func(g *Guest) { g.Listen = "" },
		"agent's key has 0":          func(g *Guest) { g.Identity.Key = nil },
		"agent's certificate":        func(g *Guest) { g.Identity.Certificate = make([]byte, pemMax+1) },
		"user \"-x\"":                func(g *Guest) { g.User = "-x" },
		"user \"root: [x\"":          func(g *Guest) { g.User = "root: [x" },
		"keys without a user":        func(g *Guest) { g.User = "" },
		"key 2: want one line":       func(g *Guest) { g.Keys = []string{key, "command=\"x\" " + key} },
		"key 1: want one line":       func(g *Guest) { g.Keys = []string{key + "\n" + key} },
		"65 keys":                    func(g *Guest) { g.Keys = slices.Repeat([]string{key}, 65) },
		"interface 0: address \"x\"": func(g *Guest) { g.Network[0].Address = "x" },
	} {
		g := goodGuest(t)
		spoil(&g)
		_, err := Seed(g)
		if err == nil || !strings.Contains(err.Error(), want) || diag.ExitCode(err) != diag.ExitData {
			t.Errorf("want %q, got %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("the error shows a key: %v", err)
		}
	}
}

// Names of VMs come from scenarios. Whatever they hold stays text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	g := goodGuest(t)
	check := func(t interface{ Fatalf(string, ...any) }, vm, comment string) {
		g := g
		g.VM, g.Keys = vm, []string{g.Keys[0] + comment}
		document, err := g.document()
		if err != nil {
			return // refused
		}
		files := map[string][]byte{}
		if err := g.cloudInit(document, files); err != nil {
			t.Fatalf("%v", err)
		}
		var u userData
		if err := yaml.Unmarshal(files["user-data"], &u); err != nil {
			t.Fatalf("%q: %v", vm, err)
		}
		var config struct {
			VM string `json:"vm"`
		}
		for _, f := range u.WriteFiles {
			if f.Path == configPath {
				if err := json.Unmarshal([]byte(f.Content), &config); err != nil {
					t.Fatalf("%q: %v", vm, err)
				}
			}
		}
		if config.VM != strings.ToValidUTF8(vm, "\ufffd") || len(u.Users) != 1 || u.Users[0].Keys[0] != g.Keys[0] || len(u.WriteFiles) != 6 ||
			!bytes.HasPrefix(files["user-data"], []byte("#cloud-config\n")) {
			t.Fatalf("%q, %q: became %+v", vm, comment, u)
		}
	}
	for _, vm := range []string{
		"a\nruncmd: [[reboot]]", "{{ v1 }}", "- x", "!!python/object:x", "*a", "&a", "#", "\"'", "--- \n...", "\u0085\u2028\x00\x1b[2J", "yes", "0777", "<<",
	} {
		check(t, vm, " "+strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, vm))
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.String().Draw(t, "vm"), rapid.StringMatching(`[ -~]*`).Draw(t, "comment"))
	})
}

func TestMachineID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, instance := range []string{"a", "b", "a-1", "A"} {
		id := MachineID(instance)
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" || id[12] != '4' || seen[id] || id != MachineID(instance) {
			t.Errorf("%q has %q", instance, id)
		}
		seen[id] = true
	}
}

func TestSecretsAreTheOwners(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteSecret(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := WriteSecret(filepath.Join(path, "x"), nil); err == nil {
		t.Error("a file holds files")
	}
}
