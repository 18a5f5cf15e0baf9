package target_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

// BMCs are read with all that says how to reach and to trust them, and remember their places.
func TestBMCs(t *testing.T) {
	c, list := target.ParseConfig("bmc.yml", read(t, "testdata/ok/bmc.yml"), providers())
	if len(list) > 0 {
		t.Fatal(list)
	}
	const sum = "aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899"
	want := []target.BMC{
		{Protocol: "ipmi", Address: "10.0.1.11:6230", Credential: "bmc", CipherSuite: 17},
		{Protocol: "redfish", Address: "[fd00::12]:8443", Credential: "bmc", System: "System.Embedded.1", Fingerprint: sum},
		{Protocol: "redfish", Address: "bmc-c.example.com", Credential: "bmc", TLS: "verified", CAFile: "/etc/lab/ca.pem"},
		{Protocol: "redfish", Address: "fd00::14", Credential: "bmc", TLS: "unverified"},
		{Protocol: "redfish", Address: "10.0.1.15", Credential: "bmc", TLS: "none"},
	}
	for i, line := range []int{6, 9, 14, 15, 16} {
		got := *c.Nodes[i].BMC
		if got.Pos.Line != line || got.Pos.File != "bmc.yml" || !strings.HasPrefix(got.Source[got.Pos.Column-1:], "bmc:") {
			t.Errorf("the BMC of node %d is at %v: %q", i, got.Pos, got.Source)
		}
		want[i].Pos, want[i].Source = got.Pos, got.Source
		if got != want[i] {
			t.Errorf("node %d: got %+v, want %+v", i, got, want[i])
		}
	}
	if c.Nodes[0].Serial != "7XK0Q13" || c.Nodes[1].UUID != "4C4C454400584B108030B7C04F513134" {
		t.Errorf("got %+v", c.Nodes[:2])
	}
	if o := c.Allow.Overrides; !c.Allow.NodePower || len(o) != 2 || o[0] != target.OverrideIdentity || o[1] != target.OverrideRedundancy {
		t.Errorf("got %+v", c.Allow)
	}
}
