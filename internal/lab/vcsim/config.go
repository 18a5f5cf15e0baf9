package vcsim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TargetFile returns the text of a target file for the vCenter, with the BMCs that were started. The passwords are in files of
// dir. more is added as it is.
func (s *Server) TargetFile(dir, more string) (string, error) {
	password, secret := filepath.Join(dir, "password"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{password: s.options.Password, secret: s.options.Password} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	var nodes strings.Builder
	for i, b := range s.bmcs {
		if i == 0 {
			nodes.WriteString("nodes:\n")
		}
		fmt.Fprintf(&nodes, "  - {id: %s, bmc: {protocol: redfish, address: %q, fingerprint: %s, credential: bmc}}\n", b.Host, b.Address, s.Fingerprint)
	}
	return fmt.Sprintf(`provider: vsphere
name: simulated vCenter
endpoint: %[1]s
fingerprint: %[2]s
credentials:
  platform: {user: %[3]s, secret: {file: %[4]s}}
  bmc: {user: bragg, secret: {file: %[5]s}}
pool: LocalDS_0
network: VM Network
templates: {linux: %[6]s, ubuntu1604: %[6]s}
facts: {platform: "simulated: a vCenter without hosts, with processes of one machine as VMs"}
simulates:
  node-metrics: random numbers, not measured on hosts
  vm-metrics: random numbers, not measured on VMs
  snapshot: a snapshot holds no data of disks
%[7]s%[8]s`, s.Endpoint, s.Fingerprint, User, password, secret, Template, nodes.String(), more), nil
}
