// Package bmc switches nodes out of band, for every provider: through the BMC of a node, by IPMI or Redfish.
//
//	target file ──▶ Open ──▶ Switch: reads back, bounded tries, deadlines ──▶ Controller: ipmi, redfish
//	                          ▲
//	Nodes (target.NodePower) ─┴─ CheckPowerCut: may this node be cut now?
//
// A Controller sends one request and believes nothing. Switch makes operations of them: an operation succeeds only when the
// power state was read back and is the requested one. Nodes is what a provider embeds: all BMCs of a target file, with
// CheckPowerCut before every cut. Check reads all of them for `bragg targets check` and changes nothing.
//
// It knows no hypervisor: which VMs run on a node and what the node says of itself comes from the provider.
package bmc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Controller is a BMC. Each method is one request with its answer, tried once, and returns when ctx ends. Switching
// methods return when the BMC has accepted the command, which says nothing about the power. They are not called at the
// same time.
type Controller interface {
	// State is PowerUnknown while the BMC itself says that it is in between.
	State(ctx context.Context) (target.PowerState, error)
	On(ctx context.Context) error
	Off(ctx context.Context) error  // cuts the power
	Soft(ctx context.Context) error // asks the operating system to stop, through ACPI
	Identity(ctx context.Context) (Identity, error)
}

// Codes of errors, which say what to do about them.
const (
	CodeCredential  = "bmc-credential"  // none is given, or the secret cannot be read
	CodeUnreachable = "bmc-unreachable" // no answer
	CodeLogin       = "bmc-login"       // user or password refused
	CodeForbidden   = "bmc-forbidden"   // the user may not do it
	CodeCertificate = "bmc-certificate" // not the pinned one, or signed by an unknown authority
	CodeProgram     = "bmc-ipmitool"    // the program is missing
	CodeGarbage     = "bmc-garbage"     // an invalid answer
	CodeRefused     = "bmc-refused"     // the BMC refused the command
	CodeLacks       = "bmc-lacks"       // the BMC cannot do it
	CodeSystem      = "bmc-system"      // no such system, or one of several
	CodeNoEffect    = "bmc-no-effect"   // accepted, and the power stayed as it was
	CodeUnsteady    = "bmc-unsteady"    // the power did not stay
	CodeIdentity    = "bmc-identity"    // the BMC belongs to another machine, or its machine is unknown
	CodeTwice       = "bmc-twice"       // two nodes have the same BMC
	CodePowerCut    = "power-refused"   // CheckPowerCut
)

// Open prepares the BMC of the node called name. It reads the secret and connects to nothing.
func Open(ctx context.Context, name string, c target.Config, b target.BMC) (*Switch, error) {
	controller, err := dial(ctx, name, c, b)
	if err != nil {
		return nil, err
	}
	return NewSwitch(name, controller, Options{}), nil
}

func dial(ctx context.Context, name string, c target.Config, b target.BMC) (Controller, error) {
	credential, ok := c.Credentials[b.Credential]
	if !ok || credential.User == "" {
		return nil, &diag.Error{
			Code: CodeCredential, Exit: diag.ExitUnavailable, Message: fmt.Sprintf("open the BMC of node %q: it has no credential with a user", name),
			Hint: "name one with bmc: {credential: NAME} and describe it under credentials, with user and secret",
		}
	}
	secret, err := credential.Secret.Read(ctx)
	if err == nil && secret == "" {
		err = fmt.Errorf("the password is empty")
	}
	if err != nil {
		return nil, &diag.Error{
			Code: CodeCredential, Exit: diag.ExitUnavailable, Err: err,
			Message: fmt.Sprintf("open the BMC of node %q: credential %q", name, b.Credential),
		}
	}
	if b.Protocol == target.IPMI {
		return newIPMI(name, b, credential.User, password{secret})
	}
	return newRedfish(name, b, credential.User, password{secret})
}

// password prints as stars, however it is printed. Only what hands it to a BMC looks inside.
type password struct{ text string }

func (password) String() string               { return "***" }
func (password) GoString() string             { return "***" }
func (password) MarshalText() ([]byte, error) { return []byte("***"), nil }

// hostPort splits the address of a BMC, which may have a port.
func hostPort(address string, port int) (string, int, error) {
	if a, err := netip.ParseAddr(address); err == nil {
		return a.String(), port, nil
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		host = address
		if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
			host = host[1 : n-1]
		}
	} else if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("invalid port: %q", text)
	}
	if !plainHost(host) {
		return "", 0, fmt.Errorf("invalid host: %q", host)
	}
	return host, port, nil
}

// plainHost accepts host names and IP addresses only. Above all a host never begins with "-": it becomes an argument of a
// program.
func plainHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for i, c := range []byte(host) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return true
}
