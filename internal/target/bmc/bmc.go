// Package bmc switches nodes out of band through their BMCs, by IPMI or Redfish, for every provider.
//
//	target file ──▶ Open ──▶ Switch: reads back, bounded tries, deadlines ──▶ Controller: ipmi, redfish
//	                          ▲
//	Nodes (target.NodePower) ─┴─ CheckPowerCut: may this node be cut now?
//
// A Controller sends single requests and trusts no answer. Switch combines them into operations: an operation succeeds only
// if the power state was read back and is the requested one. Nodes is what a provider embeds: all BMCs of a target file,
// with CheckPowerCut before every cut. Check reads all of them for `bragg targets check` and changes nothing.
//
// It does not depend on a hypervisor: the provider supplies the VMs of a node and the node's identity.
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

// Controller is a BMC. Each method makes one request without retries, and returns when ctx ends. Switching methods return
// when the BMC has accepted the command, which does not mean that the power has changed. They are not called concurrently.
type Controller interface {
	// State is PowerUnknown while the BMC itself reports a transition.
	State(ctx context.Context) (target.PowerState, error)
	On(ctx context.Context) error
	Off(ctx context.Context) error  // cuts the power
	Soft(ctx context.Context) error // requests a shutdown of the operating system, through ACPI
	Identity(ctx context.Context) (Identity, error)
}

// Codes of errors; each has its own advice.
const (
	CodeCredential  = "bmc-credential"  // missing, or the secret cannot be read
	CodeUnreachable = "bmc-unreachable" // no answer
	CodeLogin       = "bmc-login"       // user or password refused
	CodeForbidden   = "bmc-forbidden"   // the user may not do it
	CodeCertificate = "bmc-certificate" // not the pinned one, or signed by an unknown authority
	CodeProgram     = "bmc-ipmitool"    // the program is missing
	CodeGarbage     = "bmc-garbage"     // an invalid answer
	CodeRefused     = "bmc-refused"     // the BMC refused the command
	CodeLacks       = "bmc-lacks"       // the BMC cannot do it
	CodeSystem      = "bmc-system"      // no such system, or the target file must choose one of several
	CodeNoEffect    = "bmc-no-effect"   // accepted, but the power did not change
	CodeUnsteady    = "bmc-unsteady"    // the power did not stay
	CodeIdentity    = "bmc-identity"    // the BMC belongs to another machine, or its machine is not known
	CodeTwice       = "bmc-twice"       // two nodes have the same BMC
	CodePowerCut    = "power-refused"   // CheckPowerCut
)

// Open prepares the BMC of the node called name. It reads the secret, but does not connect.
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

// password prints as stars in every format. Only code that sends it to a BMC reads the field.
type password struct{ text string }

func (password) String() string               { return "***" }
func (password) GoString() string             { return "***" }
func (password) MarshalText() ([]byte, error) { return []byte("***"), nil }

// hostPort splits the address of a BMC into host and optional port.
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

// plainHost accepts only host names and IP addresses. In particular, a host must not begin with "-": it becomes an argument
// of a program.
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
