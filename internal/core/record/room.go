package record

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// The most that one entry and each of its inputs take, besides names. An entry contains a
// decision with its message. An input contains its version, its mark, its origin, the
// previous and the due version, the revision that it was reverted to, and whether it waits
// for pods or is sealed. A series of evictions names it again, with the version it delivers.
// An image has a longer digest, and its family's notes.
const (
	roomOfEntry    = 576 + 140 + 72 + MessageLimit
	roomOfInput    = 195
	roomOfImage    = 560
	roomOfEviction = 24
	roomOfPattern  = 11
	roomOfHold     = 40
)

// MaxRoom bounds the room for one workload: one namespace has that much of a ConfigMap of the
// record. It is enough for about 240 sources or 80 images.
const MaxRoom = 64 << 10

// Room is how many bytes to keep free for an entry, so later states of its inputs can
// always be written: another version, another revision, an undo, evictions.
func (e Entry) Room() int {
	workload := len(e.ID) - strings.LastIndexByte(e.ID, '/') - 1
	room := roomOfEntry + len(e.ID) + roomOfPattern*len(e.Searched)
	if e.Hold.On {
		room += roomOfHold + writtenLength(e.Hold.By)
	}
	for id, given := range e.Inputs {
		room += roomOfInput + roomOfEviction + 2*len(id.Name) + 2*workload + len(given.Rest)
		if id.Kind == input.KindImage {
			room += roomOfImage
		}
	}
	for name, value := range e.Foreign.Inputs {
		room += len(name) + len(value) + 4
	}
	for name, value := range e.Foreign.Fields {
		room += len(name) + len(value) + 4
	}
	return room
}
