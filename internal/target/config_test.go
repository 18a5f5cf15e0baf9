package target_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

var update = flag.Bool("update", false, "rewrite golden files")

// providers are one of each kind.
func providers() []target.Provider {
	return []target.Provider{{Name: "local", MakesNodes: true}, {Name: "cluster"}}
}

func testdata(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return found
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// All problems of a file are reported at once, with their positions.
func TestErrors(t *testing.T) {
	for _, path := range testdata(t, "err/*.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, list := target.ParseConfig(filepath.Base(path), read(t, path), providers())
			if diag.ExitCode(list.Err()) != diag.ExitData {
				t.Fatalf("accepted: %v", list)
			}
			var got strings.Builder
			if err := diag.Render(&got, list); err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"hunter2", "hunter3", "hunter4"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("the message shows the secret %s", secret)
				}
			}
			golden := strings.TrimSuffix(path, ".yml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := read(t, golden); got.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", &got, want)
			}
		})
	}
}

func TestCluster(t *testing.T) {
	c, list := target.ParseConfig("cluster.yml", read(t, "testdata/ok/cluster.yml"), providers())
	if len(list) > 0 {
		t.Fatal(list)
	}
	for _, n := range c.Nodes { // TestBMCs looks at places
		if n.BMC != nil {
			n.BMC.Pos, n.BMC.Source = diag.Position{}, ""
		}
	}
	for key, line := range map[string]int{"credentials.bmc": 0, "credentials.platform": 0} {
		if at := c.Places[key]; at.Pos.Line == line || at.Source != "" {
			t.Errorf("%s is at %+v: want a line, and none of its text", key, at)
		}
	}
	c.Places = nil
	want := target.Config{
		Provider: "cluster", Name: "lab 4", Endpoint: "https://10.0.0.10:9440", File: "cluster.yml",
		Nodes: []target.NodeConfig{
			{ID: "4c4c4544-0031-1", Name: "left", Address: "10.0.0.11", BMC: &target.BMC{Protocol: "ipmi", Address: "10.0.1.11", Credential: "bmc"}},
			{ID: "4c4c4544-0031-2", BMC: &target.BMC{Protocol: "redfish", Address: "10.0.1.12", Credential: "bmc"}},
			{ID: "3", Address: "10.0.0.13"},
		},
		Templates: map[string]string{"ubuntu1604": "bragg-ubuntu-2404", "windows": "win2022"},
		Pool:      "default-container", Replication: 2, Network: "vlan.0",
		Addresses: target.Addresses{First: "10.0.2.10", Last: "10.0.2.200", Prefix: 24, Gateway: "10.0.2.1"},
		Credentials: map[string]target.Credential{
			"bmc":      {User: "ADMIN", Secret: target.Secret{Env: "BMC_PASSWORD"}},
			"platform": {User: "admin", Secret: target.Secret{File: "/run/secrets/platform"}},
			"vault":    {Secret: target.Secret{Command: []string{"vault", "read", "-field=password", "secret/lab4"}}},
		},
		Facts:     []target.Fact{{Name: "replication factor", Value: "2"}, {Name: "compression", Value: "inline"}},
		Simulates: map[target.Capability]string{target.CapNodeMeter: "random numbers"},
		Allow:     target.Allow{NodePower: true},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
}

func TestLocalFile(t *testing.T) {
	c, list := target.ParseConfig("local.yml", read(t, "testdata/ok/local.yml"), providers())
	if len(list) > 0 {
		t.Fatal(list)
	}
	if c.NodeCount != 8 || c.Allow.NodePower || c.Options["cgroups"] != "off" || len(c.Facts) != 3 ||
		c.Facts[2] != (target.Fact{Name: "encrypted", Value: "true"}) {
		t.Errorf("got %+v", c)
	}
}

// Switching nodes is forbidden unless the file allows it; where nodes are made up it is allowed unless forbidden.
func TestPowerIsAskedFor(t *testing.T) {
	for text, want := range map[string]bool{
		"provider: cluster\nnodes: [{id: a}]":                           false,
		"provider: cluster\nnodes: [{id: a}]\nallow: {}":                false,
		"provider: cluster\nnodes: [{id: a}]\nallow: {node_power: yes}": true,
		"provider: local": true,
		"provider: local\nallow: {node_power: false}": false,
		"allow: {node_power: false}\nprovider: local": false,
	} {
		c, list := target.ParseConfig("t.yml", []byte(text), providers())
		if len(list) > 0 || c.Allow.NodePower != want {
			t.Errorf("%q: power is %v, %v", text, c.Allow.NodePower, list)
		}
	}
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	var document any
	if err := json.Unmarshal(target.Schema(), &document); err != nil {
		t.Fatal(err)
	}
	// The schema names the providers that exist; the tests have others.
	document.(map[string]any)["properties"].(map[string]any)["provider"] = map[string]any{"enum": []any{"local", "cluster"}}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("target.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("target.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// valid tells what the schema says about a YAML text; known is false where the text has no equivalent in JSON.
func valid(schema *jsonschema.Schema, text []byte) (ok, known bool) {
	var document any
	if yaml.Load(text, &document) != nil {
		return false, false
	}
	plain, err := json.Marshal(document)
	if err != nil {
		return false, false
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(plain)))
	return err == nil && schema.Validate(value) == nil, true
}

// The schema and the parser agree, but for rules that a schema cannot express.
func TestSchemaAgrees(t *testing.T) {
	schema := compileSchema(t)
	for _, path := range testdata(t, "*/*.yml") {
		base := filepath.Base(path)
		want := filepath.Base(filepath.Dir(path)) == "ok"
		switch base {
		case "local_nodes.yml", "nodes_count.yml", "nodes_missing.yml", "alias.yml", "lines.yml", "merge.yml":
			continue // depends on the provider, or on how the YAML is written
		}
		if strings.HasPrefix(base, "semantic_") {
			continue
		}
		if got, known := valid(schema, read(t, path)); got != want && (known || want) {
			t.Errorf("%s: the schema says %v", path, got)
		}
	}
}

func TestSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRAGG_TEST_SECRET", "from env")
	for _, tt := range []struct {
		secret target.Secret
		want   string
		ok     bool
	}{
		{target.Secret{Env: "BRAGG_TEST_SECRET"}, "from env", true},
		{target.Secret{Env: "BRAGG_TEST_NO_SECRET"}, "", false},
		{target.Secret{File: path}, "from file", true},
		{target.Secret{File: large}, "", false},
		{target.Secret{File: "/dev/zero"}, "", false},
		{target.Secret{File: "/no/such/file"}, "", false},
		{target.Secret{Command: []string{"printf", "%s\n\n", "a b"}}, "a b\n", true},
		{target.Secret{Command: []string{"false"}}, "", false},
		{target.Secret{Command: []string{"/no/such/program"}}, "", false},
		{target.Secret{}, "", false},
	} {
		got, err := tt.secret.Read(t.Context())
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%+v: got %q, %v", tt.secret, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (target.Secret{Command: []string{"sleep", "1000"}}).Read(ctx); err == nil {
		t.Error("a command outlived its context")
	}
}

func TestMarkHidesTheNonce(t *testing.T) {
	tag := target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
	marks := map[string]bool{}
	for _, other := range []target.Tag{
		tag, {Controller: "cr", Run: "", Nonce: tag.Nonce}, {Controller: "", Run: "cr", Nonce: tag.Nonce},
		{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 15) + "ac"}, {Controller: "c", Run: "r" + tag.Nonce},
	} {
		if m := other.Mark(); marks[m] || strings.Contains(m, "abab") {
			t.Errorf("mark %q of %+v", m, other)
		} else {
			marks[m] = true
		}
	}
	if again := tag; !marks[again.Mark()] {
		t.Error("a tag has two marks")
	}
}

// Whatever the text is, the parser comes back, and what it accepts the schema accepts too.
func FuzzParseConfig(f *testing.F) {
	for _, path := range testdata(f, "*/*.yml") {
		f.Add(read(f, path))
	}
	schema := compileSchema(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, list := target.ParseConfig("t.yml", text, providers())
		for _, d := range list {
			if d.Message == "" || d.Code == "" {
				t.Errorf("a problem without words: %+v", d)
			}
		}
		if list.HasErrors() {
			return
		}
		if c.Provider == "" {
			t.Error("accepted a target without a provider")
		}
		if ok, known := valid(schema, text); known && !ok {
			t.Errorf("the parser accepts what the schema does not: %q", text)
		}
	})
}

// A source of the target's own kind needs no address: it is the endpoint, with its trust and credential.
func TestSourceOfThePlatform(t *testing.T) {
	providers := append(providers(), target.Provider{Name: "vsphere"}, target.Provider{Name: "nutanix"})
	parse := func(text string) (target.Config, string) {
		c, list := target.ParseConfig("t.yml", []byte(text), providers)
		var all strings.Builder
		if err := diag.Render(&all, list); err != nil {
			t.Fatal(err)
		}
		return c, all.String()
	}
	pin := strings.Repeat("0a", 32)
	c, problems := parse("provider: nutanix\nnodes: [{id: a}]\nendpoint: prism.lab\nfingerprint: \"" + pin + "\"\ncredentials: {api_key: {secret: {env: X}}}\nsources: [{name: p, kind: nutanix}, {name: v, kind: vsphere, url: \"https://vc\"}]")
	want := target.Source{Name: "p", Kind: "nutanix", URL: "https://prism.lab:9440", Fingerprint: pin, Credential: "api_key"}
	if problems != "" || !reflect.DeepEqual(c.Resolved(c.Sources[0]), want) || c.Resolved(c.Sources[1]).URL != "https://vc" {
		t.Errorf("%s%+v", problems, c.Resolved(c.Sources[0]))
	}
	c, problems = parse("provider: vsphere\nnodes: [{id: a}]\nendpoint: https://vc.lab/sdk\ncredentials: {platform: {user: u, secret: {env: X}}}\nsources: [{name: v, kind: vsphere}]")
	if got := c.Resolved(c.Sources[0]); problems != "" || got.URL != "https://vc.lab/sdk" || got.Credential != "platform" {
		t.Errorf("%s%+v", problems, got)
	}
	for text, want := range map[string]string{
		"provider: vsphere\nnodes: [{id: a}]\nendpoint: vc\nsources: [{name: v, kind: nutanix}]":                  `key "url" is missing`,
		"provider: vsphere\nnodes: [{id: a}]\nsources: [{name: v, kind: vsphere}]":                                `key "url" is missing`,
		"provider: vsphere\nnodes: [{id: a}]\nendpoint: vc\nsources: [{name: v, kind: vsphere, ca_file: /x.pem}]": "need a url",
	} {
		if _, problems := parse(text); !strings.Contains(problems, want) {
			t.Errorf("%s: got %s, want %q", text, problems, want)
		}
	}
}

// TestInFolder: certificates and secrets are found beside the target file, wherever the program runs.
func TestInFolder(t *testing.T) {
	c := target.Config{
		CAFile: "ca.pem", Sources: []target.Source{{CAFile: "sub/ca.pem"}, {CAFile: filepath.Join(t.TempDir(), "x.pem")}, {}},
		Nodes:       []target.NodeConfig{{}, {BMC: &target.BMC{CAFile: "bmc.pem"}}},
		Credentials: map[string]target.Credential{"a": {User: "u", Secret: target.Secret{File: "secret"}}, "b": {Secret: target.Secret{Env: "X"}}},
	}
	kept, dir := c.Sources[1].CAFile, t.TempDir()
	c.InFolder(dir)
	got := []string{c.CAFile, c.Sources[0].CAFile, c.Sources[1].CAFile, c.Sources[2].CAFile, c.Nodes[1].BMC.CAFile, c.Credentials["a"].Secret.File, c.Credentials["b"].Secret.File}
	want := []string{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "sub", "ca.pem"), kept, "", filepath.Join(dir, "bmc.pem"), filepath.Join(dir, "secret"), ""}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What the owner says of the platform is added to what the provider knows of itself.
func TestSimulating(t *testing.T) {
	c := target.Config{Simulates: map[target.Capability]string{target.CapSnapshot: "no data", target.CapNodeMeter: "random numbers"}}
	own := map[target.Capability]string{target.CapSnapshot: "of the provider"}
	i, err := c.Simulating(target.Inventory{Name: "lab", Simulates: own}, nil)
	want := map[target.Capability]string{target.CapSnapshot: "of the provider", target.CapNodeMeter: "random numbers"}
	if err != nil || i.Name != "lab" || !reflect.DeepEqual(i.Simulates, want) || len(own) != 1 {
		t.Errorf("got %+v, %v; the provider's own map is %v", i, err, own)
	}
}
