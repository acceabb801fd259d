package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Sockets in the control plane's directory. Sockets in the file system work across network
// namespaces, so the host's network stays unchanged. The names are relative: the directory's
// path may be too long for a socket.
const (
	apiSocket            = "api.sock"
	kubeletSocket        = "kubelet.sock"
	registrySocket       = "registry.sock"
	secureRegistrySocket = "registry-tls.sock"
)

// gateway connects the host's side: api.sock to the API server's port, the registries'
// sockets to their ports, and the kubelet's port, which the API server uses, to
// kubelet.sock.
func gateway(args []string) error {
	if len(args) != 4 {
		return errors.New("want: gateway API-ADDRESS KUBELET-ADDRESS REGISTRY-ADDRESS SECURE-REGISTRY-ADDRESS")
	}
	return serve(
		link{"unix", apiSocket, "tcp", args[0]},
		link{"tcp", args[1], "unix", kubeletSocket},
		link{"unix", registrySocket, "tcp", args[2]},
		link{"unix", secureRegistrySocket, "tcp", args[3]},
	)
}

// link forwards connections from one address to another.
type link struct {
	network, address     string
	toNetwork, toAddress string
}

// serve forwards the links until one of them fails.
func serve(links ...link) error {
	failed := make(chan error)
	for _, l := range links {
		if l.network == "unix" {
			_ = os.Remove(l.address)
		}
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", l.address, err)
		}
		go func() { failed <- l.accept(listener) }()
	}
	return <-failed
}

func (l link) accept(listener net.Listener) error {
	for {
		from, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept on %s: %w", l.address, err)
		}
		go l.join(from)
	}
}

// join copies both ways until both have ended.
func (l link) join(from net.Conn) {
	defer from.Close()
	to, err := net.Dial(l.toNetwork, l.toAddress)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	half := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if c, ok := to.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
		done <- struct{}{}
	}
	go half(to, from)
	go half(from, to)
	<-done
	<-done
}
