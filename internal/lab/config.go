package lab

import (
	"fmt"
	"strings"
)

// hostsFile is hosts(5) of a host: libvirt resolves its own name, and a lab has no DNS.
func hostsFile(l *Lab) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for _, h := range l.Hosts {
		fmt.Fprintf(&b, "%s %s\n", h.Address, h.Name)
	}
	return b.String()
}

// libvirtdConfig is for root alone, like the folder that the socket lies in: who reaches it can be root. The UUID of the
// host is its own; migration between two hosts with one UUID is refused.
func libvirtdConfig(h Host) string {
	return fmt.Sprintf(`host_uuid = "%s"
unix_sock_rw_perms = "0700"
unix_sock_ro_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:file:/var/log/libvirt/libvirtd.log"
`, h.UUID)
}

// qemuConfig has no cgroups, security drivers and namespaces: hosts are namespaces themselves. Output of guests goes to
// files, so that no virtlogd is needed.
func qemuConfig(h Host) string {
	return fmt.Sprintf(`user = "root"
group = "root"
security_driver = "none"
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
migration_host = "%s"
migration_address = "%s"
`, h.Address, h.Address)
}

func networkXML() string {
	return fmt.Sprintf(`<network>
  <name>%s</name>
  <forward mode='bridge'/>
  <bridge name='%s'/>
</network>
`, PoolName, PoolName)
}

func poolXML(l *Lab) string {
	return fmt.Sprintf(`<pool type='dir'>
  <name>%s</name>
  <target><path>%s</path></target>
</pool>
`, PoolName, l.PoolDir())
}

// sshdConfig lets in who has the lab's key, as root. Files belong to the lab's folder, whose parents may be anybody's:
// hence no StrictModes.
func sshdConfig(l *Lab, h Host) string {
	return fmt.Sprintf(`ListenAddress %s
Port 22
HostKey %s/ssh_host_key
AuthorizedKeysFile %s/ssh/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
MaxSessions 100
Subsystem sftp internal-sftp
`, h.Address, h.Dir, l.Dir)
}
