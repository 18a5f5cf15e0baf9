package vcsimtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// TargetFile returns the text of a target file for the vCenter. The password is in a file of dir. more is added as it is.
func (s *Server) TargetFile(dir, more string) (string, error) {
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(Password+"\n"), 0o600); err != nil {
		return "", err
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf(`provider: vsphere
name: cluster
endpoint: %[1]s
fingerprint: %[2]s
credentials:
  platform: {user: %[3]s, secret: {file: %[4]s}}
  bmc: {user: bragg, secret: {file: %[5]s}}
pool: LocalDS_0
network: VM Network
templates: {linux: %[6]s, ubuntu1604: %[6]s}
%[7]s`, s.Endpoint, s.Fingerprint, User, password, secret, Template, more), nil
}
