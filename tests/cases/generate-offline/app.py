print("parser")
