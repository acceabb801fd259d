package announce

// Several notifies users in several ways.
type Several []interface{ Announce(Event) }

// Announce passes the event on to all of them.
func (s Several) Announce(e Event) {
	for _, one := range s {
		one.Announce(e)
	}
}
