package main

import (
	"net"
	"reflect"
	"sync"
	"unsafe"

	"github.com/Shopify/toxiproxy/v2"
)

// known are the proxies with flows, by name. Toxiproxy's own collection must not be asked from within a flow: it may be
// locked by a goroutine that waits for the flow.
var known sync.Map

// reset ends every connection of a link with RST, at both ends.
func reset(link string) {
	proxy, ok := known.Load(link)
	if !ok {
		return
	}
	connections := connectionsOf(proxy.(*toxiproxy.Proxy))
	// All of them before any is closed: closing one end makes Toxiproxy close the other, which must be a reset as well.
	for _, connection := range connections {
		connection.SetLinger(0)
	}
	for _, connection := range connections {
		connection.Close()
	}
}

// connectionsOf reads a field that Toxiproxy keeps to itself: a toxic sees bytes only, and its own reset toxic can
// neither end connections that were there before it nor silent ones. A test fails if another version has no such field.
func connectionsOf(proxy *toxiproxy.Proxy) []*net.TCPConn {
	field := reflect.ValueOf(proxy).Elem().FieldByName("connections")
	open := (*toxiproxy.ConnectionList)(field.Addr().UnsafePointer())
	open.Lock()
	defer open.Unlock()
	list := reflect.ValueOf(open).Elem().FieldByName("list")
	byName := *(*map[string]net.Conn)(unsafe.Pointer(list.UnsafeAddr()))
	connections := make([]*net.TCPConn, 0, len(byName))
	for _, connection := range byName {
		connections = append(connections, connection.(*net.TCPConn))
	}
	return connections
}
