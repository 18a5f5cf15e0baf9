// Package login derives the keys of ssh with which programs of a scenario log in to guests.
//
//	NewKeyring ──▶ Login: the key of this program, whose public half guests accept
//	           └─▶ Host:  the key of one guest, by which this program knows it
package login

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Keyring derives the keys of ssh that this program gives to guests: one by which it logs in, and one of the sshd of each guest. They
// are in the memory of this program and in the seeds alone. NewKeyring makes one.
type Keyring struct{ secret [sha256.Size]byte }

// NewKeyring makes the keys of one run.
func NewKeyring() (k Keyring) {
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

// key returns the private key of a purpose in OpenSSH's format, and its public key as one line.
func (k Keyring) key(purpose string) (private, public string, err error) {
	mac := hmac.New(sha256.New, k.secret[:])
	mac.Write([]byte(purpose))
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	block, err := ssh.MarshalPrivateKey(key, "bragg")
	if err != nil {
		return "", "", err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// Login returns the key by which this program logs in to guests.
func (k Keyring) Login() (private, public string, err error) { return k.key("login") }

// Host returns the key of the sshd of a guest.
func (k Keyring) Host(vm string) (private, public string, err error) { return k.key("host " + vm) }
