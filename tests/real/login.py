def run(room, args): pass
