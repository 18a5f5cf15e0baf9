package lab_test

import (
	"net/netip"
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/target"
)

// What target files say is what a provider reads.
func TestTargetFiles(t *testing.T) {
	t.Parallel()
	for _, ipmi := range []bool{false, true} {
		l := &lab.Lab{
			Name: "one", Folder: lab.Folder{Dir: "/labs/one"}, Subnet: netip.MustParsePrefix("10.213.4.0/22"), Libvirt: true, SSH: true, IPMI: ipmi,
			Templates: []lab.Template{{Name: "ubuntu1604", Image: "template-ubuntu1604"}},
			Hosts: []lab.Host{
				{
					Name: "host-1", UUID: "4c4c4544-0031-4e10-8051-b4c04f4e3231", Serial: "S1", Dir: "/labs/one/hosts/host-1",
					Address: netip.MustParseAddr("10.213.4.11"), BMC: netip.MustParseAddr("10.213.4.31"),
					Fingerprint: "7196262315b6a064537f926c7e91d6cb206e0419a011efb29cd57620dfca96b4",
				},
			},
		}
		files := l.TargetFiles()
		if len(files) != 3 {
			t.Fatal(files)
		}
		for _, f := range files {
			c, problems := target.ParseConfig(f.Path, []byte(f.Text), []target.Provider{{Name: "libvirt"}, {Name: "ssh"}})
			if len(problems) > 0 {
				t.Fatalf("%s: %v\n%s", f.Path, problems, f.Text)
			}
			n, h := c.Nodes[0], l.Hosts[0]
			if c.Provider != f.Provider || !c.Allow.NodePower || n.ID != h.UUID || n.UUID != h.UUID || n.Serial != h.Serial || n.BMC == nil {
				t.Errorf("%s: %+v", f.Provider, c)
			}
			want := target.BMC{Protocol: "redfish", Address: "10.213.4.31", Credential: "bmc"}
			if ipmi {
				want.Protocol = "ipmi"
			}
			if n.BMC.Protocol != want.Protocol || n.BMC.Address != want.Address || c.Credentials["bmc"].Secret.File != "/labs/one/bmc-password" {
				t.Errorf("%s: %+v %+v", f.Provider, n.BMC, c.Credentials)
			}
			switch f.Provider {
			case "libvirt":
				endpoint := h.URI()
				if f.Connect == lab.ConnectSSH {
					endpoint = "qemu+ssh://root@10.213.4.11/system?keyfile=/labs/one/ssh/client_key&known_hosts=/labs/one/ssh/known_hosts"
				}
				if n.Endpoint != endpoint || c.Templates["ubuntu1604"] != "template-ubuntu1604" || c.Pool != "lab" || c.Network != "lab" ||
					c.Addresses.First != "10.213.6.0" || c.Addresses.Last != "10.213.7.250" || c.Addresses.Prefix != 22 {
					t.Errorf("%+v", c)
				}
			case "ssh":
				if n.Address != "root@10.213.4.11" || c.Options["ssh_options"] == "" {
					t.Errorf("%+v", c)
				}
			}
		}
	}
}
