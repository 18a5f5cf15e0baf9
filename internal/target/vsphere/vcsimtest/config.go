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
	return fmt.Sprintf(`provider: vsphere
name: cluster
endpoint: %s
fingerprint: %s
credentials:
  platform: {user: %s, secret: {file: %s}}
pool: LocalDS_0
network: VM Network
templates: {linux: %s}
%s`, s.Endpoint, s.Fingerprint, User, password, Template, more), nil
}
